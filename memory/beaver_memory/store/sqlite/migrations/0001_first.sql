-- Times are microseconds since the epoch, UTC. Lists are JSON texts. No text holds NUL or a lone surrogate.
PRAGMA application_id = 1111836238;

CREATE TABLE store_facts (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO store_facts VALUES ('identity', lower(hex(randomblob(16))));

-- One counter gives the versions of memories and of embeddings.
CREATE TABLE counter (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    value INTEGER NOT NULL
) STRICT;

INSERT INTO counter VALUES (1, 0);

-- `live` is the number of memories that are not forgotten.
CREATE TABLE owners (
    id     INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    user   TEXT NOT NULL,
    live   INTEGER NOT NULL DEFAULT 0,
    UNIQUE (tenant, user)
) STRICT;

-- The columns used by filters come first, so that SQLite does not read long texts to reach them.
-- A forgotten memory keeps its row and its number, without content.
CREATE TABLE observations (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    owner            INTEGER NOT NULL REFERENCES owners (id),
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
    narrative        TEXT NOT NULL
) STRICT;

CREATE INDEX observations_by_time ON observations (owner, created_at) WHERE deleted_at IS NULL;
CREATE INDEX observations_by_version ON observations (owner, version);
-- The index holds eight bytes of each hash; the store compares the whole hash afterwards.
CREATE INDEX observations_by_hash ON observations (owner, substr(hash, 1, 8)) WHERE deleted_at IS NULL;

-- The tags, people and paths of a memory, one row for each label. Other filters are columns, which the store checks
-- while it reads an owner's memories in order of time. Labels are rare, so they have a table of their own. It is in
-- order of time too, so that the newest memories with a tag are read without sorting. Derived data: see `labels.py`.
CREATE TABLE observation_labels (
    owner      INTEGER NOT NULL,
    label      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    memory     INTEGER NOT NULL,
    PRIMARY KEY (owner, label, created_at, memory)
) STRICT, WITHOUT ROWID;

-- Memories up to this number are in the word index. The index is rarely used and is updated before a search, so that
-- adding a memory does not wait for it.
CREATE TABLE indexed_words (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    last INTEGER NOT NULL
) STRICT;

INSERT INTO indexed_words VALUES (1, 0);

-- Exactly the texts in the word index; a deletion from the index reads them here too. The view replaces JSON's escapes
-- for white space, so that they do not become parts of words.
CREATE VIEW observation_texts AS
SELECT id, title, narrative,
    CASE facts WHEN '[]' THEN '' ELSE
        replace(replace(replace(replace(facts, '\\', ' '), '\n', ' '), '\t', ' '), '\r', ' ') END AS facts,
    CASE tags WHEN '[]' THEN '' ELSE
        replace(replace(replace(replace(tags, '\\', ' '), '\n', ' '), '\t', ' '), '\r', ' ') END AS tags,
    CASE keywords WHEN '[]' THEN '' ELSE
        replace(replace(replace(replace(keywords, '\\', ' '), '\n', ' '), '\t', ' '), '\r', ' ') END AS keywords,
    CASE related_people WHEN '[]' THEN '' ELSE
        replace(replace(replace(replace(related_people, '\\', ' '), '\n', ' '), '\t', ' '), '\r', ' ') END AS people
FROM observations WHERE deleted_at IS NULL AND id <= (SELECT last FROM indexed_words);

-- External content: the index keeps no second copy of the texts, and a deletion names the words that it removes.
CREATE VIRTUAL TABLE observations_fts USING fts5 (
    title, narrative, facts, tags, keywords, people,
    content = 'observation_texts', content_rowid = 'id', tokenize = 'porter unicode61 remove_diacritics 2'
);

-- A deletion removes the words from the index at once instead of marking them as deleted.
INSERT INTO observations_fts (observations_fts, rank) VALUES ('secure-delete', 1);

CREATE VIRTUAL TABLE observation_words USING fts5vocab ('observations_fts', 'row');

CREATE TABLE models (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

-- The key is the version, so that rows read in order of versions are stored next to each other.
CREATE TABLE observation_embeddings (
    version INTEGER PRIMARY KEY,
    memory  INTEGER NOT NULL REFERENCES observations (id),
    model   INTEGER NOT NULL REFERENCES models (id),
    owner   INTEGER NOT NULL,
    data    BLOB NOT NULL,
    UNIQUE (memory, model)
) STRICT;

CREATE INDEX observation_embeddings_by_owner ON observation_embeddings (model, owner);

-- The memories without an embedding by a model in use, so that the store need not search for them.
CREATE TABLE unembedded (
    model      INTEGER NOT NULL,
    owner      INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    memory     INTEGER NOT NULL,
    PRIMARY KEY (model, owner, created_at, memory)
) STRICT, WITHOUT ROWID;

-- The changes of a memory. Its addition has no event here, because the memory's own row records it.
CREATE TABLE observation_history (
    id     INTEGER PRIMARY KEY,
    memory INTEGER NOT NULL REFERENCES observations (id),
    event  TEXT NOT NULL,
    at     INTEGER NOT NULL,
    old    TEXT NOT NULL,
    new    TEXT NOT NULL
) STRICT;

CREATE INDEX observation_history_by_memory ON observation_history (memory);

CREATE TABLE observation_archive (
    id                      INTEGER PRIMARY KEY,
    original_observation_id INTEGER NOT NULL,
    owner                   INTEGER NOT NULL REFERENCES owners (id),
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
    archive_reason          TEXT NOT NULL
) STRICT;

CREATE INDEX observation_archive_by_original ON observation_archive (original_observation_id);
CREATE INDEX observation_archive_by_time ON observation_archive (archived_at);

CREATE TABLE session_summaries (
    owner             INTEGER NOT NULL REFERENCES owners (id),
    session           TEXT NOT NULL,
    request           TEXT NOT NULL,
    outcome           TEXT NOT NULL,
    decisions         TEXT NOT NULL,
    open_items        TEXT NOT NULL,
    observation_count INTEGER NOT NULL,
    created_at        INTEGER NOT NULL,
    PRIMARY KEY (owner, session)
) STRICT, WITHOUT ROWID;

CREATE INDEX session_summaries_by_time ON session_summaries (owner, created_at);

-- `folded` is the form that different spellings of a name share. The counts include all memories at any trust.
CREATE TABLE people (
    owner          INTEGER NOT NULL REFERENCES owners (id),
    folded         TEXT NOT NULL,
    name           TEXT NOT NULL,
    aliases        TEXT NOT NULL DEFAULT '[]',
    mention_count  INTEGER NOT NULL,
    last_mentioned INTEGER NOT NULL,
    PRIMARY KEY (owner, folded)
) STRICT, WITHOUT ROWID;
