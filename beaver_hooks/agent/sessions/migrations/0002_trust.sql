-- The trust of the caller that began the session. NULL means that an older version began it, with full trust.
ALTER TABLE sessions ADD COLUMN trust TEXT;
