-- The checksum of a summary: see `checksums.texts_checksum`. `preparation.py` gives it to the rows that are here.
ALTER TABLE session_summaries ADD COLUMN checksum bigint;
