-- Every table is keyed by tenant first: ids are unique per tenant, and versions are ordered per owner.
--
-- The functions `memory_sum`, `vector_sum` and `change_sum` give the checksums of `checksums.py`; `preparation.py`
-- registers them. Ids, versions and the numbers of rows and owners stay, so indexes and copies of vectors stay valid.
CREATE TABLE tenants (
    number  INTEGER PRIMARY KEY,
    name    TEXT NOT NULL UNIQUE,
    next_id INTEGER NOT NULL DEFAULT 1
) STRICT;

INSERT INTO tenants (name)
SELECT tenant FROM owners GROUP BY tenant ORDER BY min(id);

DROP VIEW observation_texts;
DROP INDEX observations_by_time;
DROP INDEX observations_by_version;
DROP INDEX observations_by_hash;
DROP INDEX observation_embeddings_by_owner;
DROP INDEX observation_history_by_memory;
DROP INDEX observation_archive_by_original;
DROP INDEX observation_archive_by_time;
DROP INDEX session_summaries_by_time;

ALTER TABLE owners RENAME TO old_owners;
ALTER TABLE observations RENAME TO old_observations;
ALTER TABLE observation_labels RENAME TO old_labels;
ALTER TABLE observation_embeddings RENAME TO old_embeddings;
ALTER TABLE unembedded RENAME TO old_unembedded;
ALTER TABLE observation_history RENAME TO old_history;
ALTER TABLE observation_archive RENAME TO old_archive;
ALTER TABLE session_summaries RENAME TO old_summaries;
ALTER TABLE people RENAME TO old_people;

-- `number` is unique in the file, too. `live` is the number of memories that are not forgotten; `last_version` gives
-- the versions of the owner's memories and embeddings.
CREATE TABLE owners (
    tenant       INTEGER NOT NULL REFERENCES tenants (number),
    number       INTEGER NOT NULL UNIQUE,
    user         TEXT NOT NULL,
    live         INTEGER NOT NULL DEFAULT 0,
    last_version INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, number),
    UNIQUE (tenant, user)
) STRICT, WITHOUT ROWID;

INSERT INTO owners
SELECT t.number, w.id, w.user, w.live, (SELECT value FROM counter)
FROM old_owners AS w
JOIN tenants AS t ON t.name = w.tenant;

-- `row` is unique in the file: the word index and sqlite-vec name memories by it. It is never shown.
-- The columns used by filters come first, so that SQLite does not read long texts to reach them.
-- A forgotten memory keeps its row and its id, without content.
CREATE TABLE observations (
    row              INTEGER PRIMARY KEY,
    tenant           INTEGER NOT NULL,
    id               INTEGER NOT NULL,
    checksum         INTEGER NOT NULL,
    owner            INTEGER NOT NULL,
    version          INTEGER NOT NULL,
    store            TEXT NOT NULL,
    type             TEXT NOT NULL,
    scope            TEXT NOT NULL,
    project          TEXT NOT NULL,
    session          TEXT NOT NULL,
    agent            TEXT NOT NULL,
    source           TEXT NOT NULL,
    pinned           INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    expires_at       INTEGER,
    valid_from       INTEGER,
    valid_until      INTEGER,
    deleted_at       INTEGER,
    added_at         INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    last_accessed_at INTEGER,
    confidence       REAL NOT NULL,
    importance       REAL NOT NULL,
    mention_count    INTEGER NOT NULL DEFAULT 1,
    token_count      INTEGER NOT NULL,
    length           INTEGER NOT NULL,
    hash             BLOB NOT NULL,
    speaker          TEXT NOT NULL,
    origin           TEXT NOT NULL,
    tags             TEXT NOT NULL,
    keywords         TEXT NOT NULL,
    related_files    TEXT NOT NULL,
    related_people   TEXT NOT NULL,
    terms            BLOB NOT NULL,
    title            TEXT NOT NULL,
    summary          TEXT NOT NULL,
    facts            TEXT NOT NULL,
    narrative        TEXT NOT NULL,
    FOREIGN KEY (tenant, owner) REFERENCES owners (tenant, number)
) STRICT;

INSERT INTO observations
SELECT
    o.id, t.number, o.id,
    memory_sum(
        w.tenant, w.user, o.id, o.pinned, o.created_at, o.expires_at, o.valid_from, o.valid_until, o.deleted_at,
        o.updated_at, o.mention_count, o.token_count, o.length, o.confidence, o.importance, o.last_accessed_at,
        o.hash, o.terms, CAST(o.store AS BLOB), CAST(o.type AS BLOB), CAST(o.scope AS BLOB), CAST(o.project AS BLOB),
        CAST(o.session AS BLOB), CAST(o.agent AS BLOB), CAST(o.source AS BLOB), CAST(o.speaker AS BLOB),
        CAST(o.origin AS BLOB), CAST(o.tags AS BLOB), CAST(o.keywords AS BLOB), CAST(o.related_files AS BLOB),
        CAST(o.related_people AS BLOB), CAST(o.title AS BLOB), CAST(o.summary AS BLOB), CAST(o.facts AS BLOB),
        CAST(o.narrative AS BLOB)
    ),
    o.owner, o.version, o.store, o.type, o.scope, o.project, o.session, o.agent, o.source, o.pinned, o.created_at,
    o.expires_at, o.valid_from, o.valid_until, o.deleted_at, o.added_at, o.updated_at, o.last_accessed_at, o.confidence,
    o.importance, o.mention_count, o.token_count, o.length, o.hash, o.speaker, o.origin, o.tags, o.keywords,
    o.related_files, o.related_people, o.terms, o.title, o.summary, o.facts, o.narrative
FROM old_observations AS o
CROSS JOIN old_owners AS w ON w.id = o.owner
CROSS JOIN tenants AS t ON t.name = w.tenant
ORDER BY o.id;

CREATE UNIQUE INDEX observations_by_id ON observations (tenant, id);

UPDATE tenants SET next_id = 1 + coalesce((SELECT max(id) FROM observations WHERE tenant = number), 0);

CREATE INDEX observations_by_time ON observations (tenant, owner, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX observations_by_version ON observations (tenant, owner, version);
-- The index holds eight bytes of each hash; the store compares the whole hash afterwards.
CREATE INDEX observations_by_hash ON observations (tenant, owner, substr(hash, 1, 8)) WHERE deleted_at IS NULL;

-- The tags, people and paths of a memory, one row for each label. Other filters are columns, which the store checks
-- while it reads an owner's memories in order of time. Labels are rare, so they have a table of their own. It is in
-- order of time too, so that the newest memories with a tag are read without sorting. Derived data: see `labels.py`.
CREATE TABLE observation_labels (
    tenant     INTEGER NOT NULL,
    owner      INTEGER NOT NULL,
    label      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    memory     INTEGER NOT NULL,
    PRIMARY KEY (tenant, owner, label, created_at, memory)
) STRICT, WITHOUT ROWID;

INSERT INTO observation_labels
SELECT w.tenant, l.owner, l.label, l.created_at, l.memory
FROM old_labels AS l
JOIN owners AS w ON w.number = l.owner
ORDER BY w.tenant, l.owner, l.label, l.created_at, l.memory;

-- Exactly the texts in the word index; a deletion from the index reads them here too. The view replaces JSON's escapes
-- for white space, so that they do not become parts of words. Its `id` is the number of the row, as the word index was
-- made with that name; `memory` is the id of the memory.
CREATE VIEW observation_texts AS
SELECT row AS id, tenant, id AS memory, title, narrative,
    CASE facts WHEN '[]' THEN '' ELSE
        replace(replace(replace(replace(facts, '\\', ' '), '\n', ' '), '\t', ' '), '\r', ' ') END AS facts,
    CASE tags WHEN '[]' THEN '' ELSE
        replace(replace(replace(replace(tags, '\\', ' '), '\n', ' '), '\t', ' '), '\r', ' ') END AS tags,
    CASE keywords WHEN '[]' THEN '' ELSE
        replace(replace(replace(replace(keywords, '\\', ' '), '\n', ' '), '\t', ' '), '\r', ' ') END AS keywords,
    CASE related_people WHEN '[]' THEN '' ELSE
        replace(replace(replace(replace(related_people, '\\', ' '), '\n', ' '), '\t', ' '), '\r', ' ') END AS people
FROM observations WHERE deleted_at IS NULL AND row <= (SELECT last FROM indexed_words);

-- `row` is in the order in which embeddings were stored, so that rows read in order of versions lie next to each other.
CREATE TABLE observation_embeddings (
    row      INTEGER PRIMARY KEY,
    tenant   INTEGER NOT NULL,
    memory   INTEGER NOT NULL,
    model    INTEGER NOT NULL REFERENCES models (id),
    owner    INTEGER NOT NULL,
    version  INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    data     BLOB NOT NULL,
    FOREIGN KEY (tenant, memory) REFERENCES observations (tenant, id)
) STRICT;

INSERT INTO observation_embeddings
SELECT e.version, w.tenant, e.memory, e.model, e.owner, e.version, vector_sum(e.memory, m.name, e.data), e.data
FROM old_embeddings AS e
CROSS JOIN owners AS w ON w.number = e.owner
CROSS JOIN models AS m ON m.id = e.model
ORDER BY e.version;

CREATE UNIQUE INDEX observation_embeddings_by_memory ON observation_embeddings (tenant, memory, model);
CREATE INDEX observation_embeddings_by_version ON observation_embeddings (tenant, owner, model, version);

-- The memories without an embedding by a model in use, so that the store need not search for them.
CREATE TABLE unembedded (
    tenant     INTEGER NOT NULL,
    owner      INTEGER NOT NULL,
    model      INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    memory     INTEGER NOT NULL,
    PRIMARY KEY (tenant, owner, model, created_at, memory)
) STRICT, WITHOUT ROWID;

INSERT INTO unembedded
SELECT w.tenant, u.owner, u.model, u.created_at, u.memory
FROM old_unembedded AS u
JOIN owners AS w ON w.number = u.owner
ORDER BY w.tenant, u.owner, u.model, u.created_at, u.memory;

-- The changes of a memory. Its addition has no event here, because the memory's own row records it.
CREATE TABLE observation_history (
    row      INTEGER PRIMARY KEY,
    tenant   INTEGER NOT NULL,
    memory   INTEGER NOT NULL,
    event    TEXT NOT NULL,
    at       INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    old      TEXT NOT NULL,
    new      TEXT NOT NULL,
    FOREIGN KEY (tenant, memory) REFERENCES observations (tenant, id)
) STRICT;

INSERT INTO observation_history
SELECT h.id, o.tenant, h.memory, h.event, h.at, change_sum(h.memory, h.event, h.at, h.old, h.new), h.old, h.new
FROM old_history AS h
CROSS JOIN observations AS o ON o.row = h.memory
ORDER BY h.id;

CREATE INDEX observation_history_by_memory ON observation_history (tenant, memory);

CREATE TABLE observation_archive (
    row                     INTEGER PRIMARY KEY,
    tenant                  INTEGER NOT NULL,
    original_observation_id INTEGER NOT NULL,
    owner                   INTEGER NOT NULL,
    store                   TEXT NOT NULL,
    type                    TEXT NOT NULL,
    scope                   TEXT NOT NULL,
    project                 TEXT NOT NULL,
    session                 TEXT NOT NULL,
    agent                   TEXT NOT NULL,
    source                  TEXT NOT NULL,
    pinned                  INTEGER NOT NULL,
    created_at              INTEGER NOT NULL,
    expires_at              INTEGER,
    valid_from              INTEGER,
    valid_until             INTEGER,
    added_at                INTEGER NOT NULL,
    updated_at              INTEGER NOT NULL,
    last_accessed_at        INTEGER,
    confidence              REAL NOT NULL,
    importance              REAL NOT NULL,
    mention_count           INTEGER NOT NULL,
    token_count             INTEGER NOT NULL,
    hash                    BLOB NOT NULL,
    speaker                 TEXT NOT NULL,
    origin                  TEXT NOT NULL,
    tags                    TEXT NOT NULL,
    keywords                TEXT NOT NULL,
    related_files           TEXT NOT NULL,
    related_people          TEXT NOT NULL,
    title                   TEXT NOT NULL,
    summary                 TEXT NOT NULL,
    facts                   TEXT NOT NULL,
    narrative               TEXT NOT NULL,
    archived_at             INTEGER NOT NULL,
    archive_reason          TEXT NOT NULL,
    FOREIGN KEY (tenant, owner) REFERENCES owners (tenant, number)
) STRICT;

INSERT INTO observation_archive
SELECT
    a.id, w.tenant, a.original_observation_id, a.owner, a.store, a.type, a.scope, a.project, a.session, a.agent,
    a.source, a.pinned, a.created_at, a.expires_at, a.valid_from, a.valid_until, a.added_at, a.updated_at,
    a.last_accessed_at, a.confidence, a.importance, a.mention_count, a.token_count, a.hash, a.speaker, a.origin, a.tags,
    a.keywords, a.related_files, a.related_people, a.title, a.summary, a.facts, a.narrative, a.archived_at,
    a.archive_reason
FROM old_archive AS a
CROSS JOIN owners AS w ON w.number = a.owner;

CREATE INDEX observation_archive_by_original ON observation_archive (tenant, original_observation_id);
CREATE INDEX observation_archive_by_time ON observation_archive (tenant, archived_at);

CREATE TABLE session_summaries (
    tenant            INTEGER NOT NULL,
    owner             INTEGER NOT NULL,
    agent             TEXT NOT NULL,
    session           TEXT NOT NULL,
    request           TEXT NOT NULL,
    outcome           TEXT NOT NULL,
    decisions         TEXT NOT NULL,
    open_items        TEXT NOT NULL,
    observation_count INTEGER NOT NULL,
    created_at        INTEGER NOT NULL,
    PRIMARY KEY (tenant, owner, agent, session),
    FOREIGN KEY (tenant, owner) REFERENCES owners (tenant, number)
) STRICT, WITHOUT ROWID;

INSERT INTO session_summaries
SELECT
    w.tenant, s.owner, s.agent, s.session, s.request, s.outcome, s.decisions, s.open_items, s.observation_count,
    s.created_at
FROM old_summaries AS s
JOIN owners AS w ON w.number = s.owner;

CREATE INDEX session_summaries_by_time ON session_summaries (tenant, owner, created_at);

-- `folded` is the form that different spellings of a name share. The counts include all memories at any trust.
CREATE TABLE people (
    tenant         INTEGER NOT NULL,
    owner          INTEGER NOT NULL,
    folded         TEXT NOT NULL,
    name           TEXT NOT NULL,
    aliases        TEXT NOT NULL DEFAULT '[]',
    mention_count  INTEGER NOT NULL,
    last_mentioned INTEGER NOT NULL,
    PRIMARY KEY (tenant, owner, folded),
    FOREIGN KEY (tenant, owner) REFERENCES owners (tenant, number)
) STRICT, WITHOUT ROWID;

INSERT INTO people
SELECT w.tenant, p.owner, p.folded, p.name, p.aliases, p.mention_count, p.last_mentioned
FROM old_people AS p
JOIN owners AS w ON w.number = p.owner;

-- A row that was left behind lets the whole migration fail.
CREATE TABLE left_behind (rows INTEGER NOT NULL CHECK (rows = 0)) STRICT;

INSERT INTO left_behind
VALUES
    ((SELECT count(*) FROM old_owners) - (SELECT count(*) FROM owners)),
    ((SELECT count(*) FROM old_observations) - (SELECT count(*) FROM observations)),
    ((SELECT count(*) FROM old_labels) - (SELECT count(*) FROM observation_labels)),
    ((SELECT count(*) FROM old_embeddings) - (SELECT count(*) FROM observation_embeddings)),
    ((SELECT count(*) FROM old_unembedded) - (SELECT count(*) FROM unembedded)),
    ((SELECT count(*) FROM old_history) - (SELECT count(*) FROM observation_history)),
    ((SELECT count(*) FROM old_archive) - (SELECT count(*) FROM observation_archive)),
    ((SELECT count(*) FROM old_summaries) - (SELECT count(*) FROM session_summaries)),
    ((SELECT count(*) FROM old_people) - (SELECT count(*) FROM people));

DROP TABLE left_behind;
DROP TABLE old_labels;
DROP TABLE old_unembedded;
DROP TABLE old_embeddings;
DROP TABLE old_history;
DROP TABLE old_archive;
DROP TABLE old_summaries;
DROP TABLE old_people;
DROP TABLE old_observations;
DROP TABLE old_owners;
DROP TABLE counter;
