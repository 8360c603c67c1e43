-- The checksum of each message: see `sums.py`. NULL means that an older version stored the message; the next version that
-- opens the database for writing gives it one.
ALTER TABLE messages ADD COLUMN checksum INTEGER;

CREATE INDEX messages_without_checksum ON messages (number) WHERE checksum IS NULL;
