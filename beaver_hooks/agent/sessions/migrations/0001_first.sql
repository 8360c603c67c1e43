-- Free text is kept as BLOB: UTF-8 in which a lone surrogate has its three bytes, so that whatever a Python
-- text can hold comes back as it was. Read it with CAST(text AS TEXT).

-- `number` is never given twice: the search index names sessions by it.
CREATE TABLE sessions (
    number   INTEGER PRIMARY KEY AUTOINCREMENT,
    id       TEXT NOT NULL UNIQUE,
    user     TEXT,
    title    BLOB,
    opening  BLOB,
    paused   INTEGER NOT NULL DEFAULT 0,
    created  TEXT NOT NULL,
    updated  TEXT NOT NULL,
    messages INTEGER NOT NULL DEFAULT 0,
    events   INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX sessions_by_time ON sessions (updated);
CREATE INDEX sessions_by_user ON sessions (user, updated);

-- What the user and the model saw.
CREATE TABLE messages (
    number  INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL,
    role    TEXT NOT NULL,
    text    BLOB NOT NULL,
    at      TEXT NOT NULL,
    id      BLOB,
    speaker BLOB
) STRICT;

CREATE INDEX messages_by_session ON messages (session, number);

-- What neither saw. A table of its own: no history and no search can come across it.
CREATE TABLE events (
    number  INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL,
    at      TEXT NOT NULL,
    name    TEXT NOT NULL,
    payload TEXT NOT NULL
) STRICT;

CREATE INDEX events_by_session ON events (session, number);

-- The terms of each message, separated by spaces, and whose it is. `ascii` takes every other character as it is:
-- what a term is, is decided in one place, before it comes here.
CREATE VIRTUAL TABLE words USING fts5 (terms, scope, tokenize = 'porter ascii');

-- Deleting takes the terms out of the index at once instead of marking them as deleted.
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);
