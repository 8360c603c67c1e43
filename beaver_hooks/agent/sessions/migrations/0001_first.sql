-- Free text is stored as BLOB: UTF-8 in which a lone surrogate has three bytes, so that every Python text is read back
-- unchanged. Read it with CAST(text AS TEXT).

-- `number` is never used twice, because the search index refers to sessions by it. `trust` is that of the caller who
-- began the session; an imported session has none.
CREATE TABLE sessions (
    number   INTEGER PRIMARY KEY AUTOINCREMENT,
    id       TEXT NOT NULL UNIQUE,
    user     TEXT,
    title    BLOB,
    opening  BLOB,
    trust    TEXT,
    created  TEXT NOT NULL,
    updated  TEXT NOT NULL,
    messages INTEGER NOT NULL DEFAULT 0,
    events   INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX sessions_by_time ON sessions (updated);
CREATE INDEX sessions_by_user ON sessions (user, updated);

-- The messages that the user and the model saw. Checksums: see `sums.py`.
CREATE TABLE messages (
    number   INTEGER PRIMARY KEY AUTOINCREMENT,
    session  INTEGER NOT NULL,
    role     TEXT NOT NULL,
    text     BLOB NOT NULL,
    at       TEXT NOT NULL,
    id       BLOB,
    speaker  BLOB,
    checksum INTEGER NOT NULL
) STRICT;

CREATE INDEX messages_by_session ON messages (session, number);

-- The events that neither the user nor the model saw. No history and no search reads this table.
CREATE TABLE events (
    number  INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL,
    at      TEXT NOT NULL,
    name    TEXT NOT NULL,
    payload TEXT NOT NULL
) STRICT;

CREATE INDEX events_by_session ON events (session, number);

-- The terms of each message, separated by spaces, and its scope. Python splits texts into terms; the tokenizer `ascii`
-- leaves all characters that are not ASCII unchanged.
CREATE VIRTUAL TABLE words USING fts5 (terms, scope, tokenize = 'porter ascii');

-- A deletion removes the terms from the index at once instead of marking them as deleted.
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);
