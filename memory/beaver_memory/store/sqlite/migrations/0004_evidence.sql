-- The words that a memory rests on. An empty text changes no checksum.
ALTER TABLE observations ADD COLUMN evidence TEXT NOT NULL DEFAULT '';
