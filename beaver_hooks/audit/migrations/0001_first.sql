-- The audit events. Records are only appended; `mac` chains each record to the previous one.
CREATE TABLE audit (
    seq     INTEGER PRIMARY KEY,
    at      TEXT NOT NULL,
    name    TEXT NOT NULL,
    plugin  TEXT,
    hook    TEXT,
    turn    TEXT,
    session TEXT,
    facts   TEXT NOT NULL,
    mac     TEXT NOT NULL
) STRICT;

CREATE TRIGGER audit_keeps_what_it_has BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit trail is append-only');
END;

CREATE TRIGGER audit_loses_nothing BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'the audit trail is append-only');
END;

-- INSERT OR REPLACE deletes rows without firing the delete trigger, so an insert must use a free number.
CREATE TRIGGER audit_replaces_nothing BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM audit WHERE seq = NEW.seq)
BEGIN
    SELECT RAISE(ABORT, 'the audit trail is append-only');
END;

-- The receipt of each turn. It is replaced when the turn is complete, limited in number, and not chained. The
-- checksum is that of its turn, time and body.
CREATE TABLE receipts (
    turn     TEXT NOT NULL PRIMARY KEY,
    at       TEXT NOT NULL,
    body     TEXT NOT NULL,
    checksum INTEGER NOT NULL
) STRICT;

CREATE INDEX receipts_by_time ON receipts (at);

-- The last known state of each plugin.
CREATE TABLE health (
    plugin  TEXT NOT NULL PRIMARY KEY,
    body    TEXT NOT NULL,
    updated TEXT NOT NULL
) STRICT;
