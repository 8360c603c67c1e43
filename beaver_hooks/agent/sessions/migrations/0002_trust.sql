-- How far the caller who began the session was trusted; NULL where an older version began it, which was full.
ALTER TABLE sessions ADD COLUMN trust TEXT;
