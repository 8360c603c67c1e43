-- Times are microseconds since the epoch, UTC. Lists are JSON texts. No text holds NUL or a lone surrogate.
-- Every table of the users is keyed by tenant first: ids are unique per tenant, and versions are ordered per owner.
-- Checksums: see `checksums.py`.
PRAGMA application_id = 1111836238;

-- `analyser` is the version of the analyser that made the stored terms, 0 before there are any. While the terms are
-- rebuilt, the number of the last rebuilt row follows the version: `3:1000`.
CREATE TABLE store_facts (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO store_facts VALUES ('identity', lower(hex(randomblob(16)))), ('analyser', '0');

CREATE TABLE tenants (
    number  INTEGER PRIMARY KEY,
    name    TEXT NOT NULL UNIQUE,
    next_id INTEGER NOT NULL DEFAULT 1
) STRICT;

-- `number` is unique in the file, too. `live` is the number of memories that are not forgotten; `last_version` gives
-- the versions of the owner's memories and embeddings.
CREATE TABLE owners (
    tenant       INTEGER NOT NULL REFERENCES tenants (number),
    number       INTEGER NOT NULL UNIQUE,
    kind         TEXT NOT NULL,
    user         TEXT NOT NULL,
    live         INTEGER NOT NULL DEFAULT 0,
    last_version INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, number),
    UNIQUE (tenant, kind, user)
) STRICT, WITHOUT ROWID;

-- `row` is unique in the file: the word index and sqlite-vec name memories by it. It is never shown.
-- `uid` is random, 16 bytes, and stays with the memory in every copy of it.
-- The columns used by filters come first, so that SQLite does not read long texts to reach them.
-- `superseded_by` is the memory that holds in place of one whose time has ended, `doubted_by` a newer one that may hold
-- in its place. `evidence` holds the words that a memory rests on. A forgotten memory keeps its row, its id and its uid, without content.
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
    superseded_by    INTEGER,
    doubted_by       INTEGER,
    deleted_at       INTEGER,
    added_at         INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    last_accessed_at INTEGER,
    confidence       REAL NOT NULL,
    importance       REAL NOT NULL,
    mention_count    INTEGER NOT NULL DEFAULT 1,
    token_count      INTEGER NOT NULL,
    length           INTEGER NOT NULL,
    uid              BLOB NOT NULL,
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
    evidence         TEXT NOT NULL,
    FOREIGN KEY (tenant, owner) REFERENCES owners (tenant, number)
) STRICT;

CREATE UNIQUE INDEX observations_by_id ON observations (tenant, id);
CREATE UNIQUE INDEX observations_by_uid ON observations (tenant, uid);
CREATE INDEX observations_by_time ON observations (tenant, owner, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX observations_by_version ON observations (tenant, owner, version);
-- The index holds eight bytes of each hash; the store compares the whole hash afterwards.
CREATE INDEX observations_by_hash ON observations (tenant, owner, substr(hash, 1, 8)) WHERE deleted_at IS NULL;
CREATE INDEX observations_by_successor ON observations (tenant, superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX observations_by_doubt ON observations (tenant, doubted_by) WHERE doubted_by IS NOT NULL;

-- The tags, people and paths of a memory, one row for each label. Other filters are columns, which the store checks
-- while it reads an owner's memories in order of time. Labels are rare, so they have a table of their own. It is in
-- order of time too, so that the newest memories with a tag are read without sorting. Derived data: see `people.py`.
CREATE TABLE observation_labels (
    tenant     INTEGER NOT NULL,
    owner      INTEGER NOT NULL,
    label      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    memory     INTEGER NOT NULL,
    PRIMARY KEY (tenant, owner, label, created_at, memory)
) STRICT, WITHOUT ROWID;

-- Memories up to this row are in the word index. The index is rarely used and is updated before a search, so that
-- adding a memory does not wait for it.
CREATE TABLE indexed_words (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    last INTEGER NOT NULL
) STRICT;

INSERT INTO indexed_words VALUES (1, 0);

-- Exactly the texts in the word index; a deletion from the index reads them here too. The view replaces JSON's escapes
-- for white space, so that they do not become parts of words.
CREATE VIEW observation_texts AS
SELECT row, tenant, id, title, narrative,
    CASE facts WHEN '[]' THEN '' ELSE
        replace(replace(replace(replace(facts, '\\', ' '), '\n', ' '), '\t', ' '), '\r', ' ') END AS facts,
    CASE tags WHEN '[]' THEN '' ELSE
        replace(replace(replace(replace(tags, '\\', ' '), '\n', ' '), '\t', ' '), '\r', ' ') END AS tags,
    CASE keywords WHEN '[]' THEN '' ELSE
        replace(replace(replace(replace(keywords, '\\', ' '), '\n', ' '), '\t', ' '), '\r', ' ') END AS keywords,
    CASE related_people WHEN '[]' THEN '' ELSE
        replace(replace(replace(replace(related_people, '\\', ' '), '\n', ' '), '\t', ' '), '\r', ' ') END AS people
FROM observations WHERE deleted_at IS NULL AND row <= (SELECT last FROM indexed_words);

-- External content: the index keeps no second copy of the texts, and a deletion names the words that it removes.
CREATE VIRTUAL TABLE observations_fts USING fts5 (
    title, narrative, facts, tags, keywords, people,
    content = 'observation_texts', content_rowid = 'row', tokenize = 'porter unicode61 remove_diacritics 2'
);

-- A deletion removes the words from the index at once instead of marking them as deleted.
INSERT INTO observations_fts (observations_fts, rank) VALUES ('secure-delete', 1);

CREATE VIRTUAL TABLE observation_words USING fts5vocab ('observations_fts', 'row');

CREATE TABLE models (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

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

CREATE INDEX observation_history_by_memory ON observation_history (tenant, memory);

-- A session belongs to an agent: two agents may have sessions of the same name.
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
    checksum          INTEGER NOT NULL,
    PRIMARY KEY (tenant, owner, agent, session),
    FOREIGN KEY (tenant, owner) REFERENCES owners (tenant, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX session_summaries_by_time ON session_summaries (tenant, owner, created_at);

-- `folded` is the form that different spellings of a name share. The counts include all memories at any trust. The
-- checksum leaves them out: they are compared with the memories that mention the person.
CREATE TABLE people (
    tenant         INTEGER NOT NULL,
    owner          INTEGER NOT NULL,
    folded         TEXT NOT NULL,
    name           TEXT NOT NULL,
    aliases        TEXT NOT NULL DEFAULT '[]',
    mention_count  INTEGER NOT NULL,
    last_mentioned INTEGER NOT NULL,
    checksum       INTEGER NOT NULL,
    PRIMARY KEY (tenant, owner, folded),
    FOREIGN KEY (tenant, owner) REFERENCES owners (tenant, number)
) STRICT, WITHOUT ROWID;

-- What the capture of an owner's memories took on a day (UTC), and the turns from which they were captured. No text.
CREATE TABLE capture_days (
    tenant   INTEGER NOT NULL,
    owner    INTEGER NOT NULL,
    day      TEXT NOT NULL,
    memories INTEGER NOT NULL,
    calls    INTEGER NOT NULL,
    tokens   INTEGER NOT NULL,
    PRIMARY KEY (tenant, owner, day),
    FOREIGN KEY (tenant, owner) REFERENCES owners (tenant, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE captured_turns (
    tenant INTEGER NOT NULL,
    owner  INTEGER NOT NULL,
    turn   TEXT NOT NULL,
    PRIMARY KEY (tenant, owner, turn),
    FOREIGN KEY (tenant, owner) REFERENCES owners (tenant, number)
) STRICT, WITHOUT ROWID;

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

-- Keyed hashes of forgotten texts, by which capture knows the same words again: see `store/fingerprint.py`.
CREATE TABLE forgotten_texts (
    tenant INTEGER NOT NULL,
    owner  INTEGER NOT NULL,
    digest BLOB NOT NULL,
    PRIMARY KEY (tenant, owner, digest),
    FOREIGN KEY (tenant, owner) REFERENCES owners (tenant, number)
) STRICT, WITHOUT ROWID;
