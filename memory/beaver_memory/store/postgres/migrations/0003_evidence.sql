-- The words that a memory rests on. An empty text changes no checksum.
ALTER TABLE texts ADD COLUMN evidence text COLLATE "C" NOT NULL DEFAULT '';
