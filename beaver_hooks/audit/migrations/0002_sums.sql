-- The checksum of each receipt: that of its turn, time and body. NULL means that an older version stored it; the next
-- version that opens the database for writing gives it one.
ALTER TABLE receipts ADD COLUMN checksum INTEGER;

CREATE INDEX receipts_without_checksum ON receipts (turn) WHERE checksum IS NULL;
