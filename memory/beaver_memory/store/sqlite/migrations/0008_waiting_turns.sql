-- The turns that wait to be captured: see `store/turn_queue.py`. Captured turns leave no row here. A turn without
-- `due_at` is parked.
CREATE TABLE waiting_turns (
    number    INTEGER PRIMARY KEY,
    tenant    INTEGER NOT NULL,
    owner     INTEGER NOT NULL,
    key       TEXT NOT NULL,
    turn      TEXT NOT NULL,
    session   TEXT NOT NULL,
    project   TEXT NOT NULL,
    agent     TEXT NOT NULL,
    store     TEXT NOT NULL,
    content   TEXT NOT NULL,
    queued_at INTEGER NOT NULL,
    attempts  INTEGER NOT NULL DEFAULT 0,
    due_at    INTEGER,
    error     TEXT NOT NULL DEFAULT '',
    UNIQUE (tenant, owner, key),
    FOREIGN KEY (tenant, owner) REFERENCES owners (tenant, number)
) STRICT;

CREATE INDEX waiting_turns_by_session ON waiting_turns (tenant, owner, session, number);
