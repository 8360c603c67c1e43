-- Times are microseconds since the epoch, UTC. Lists are JSON texts. No text holds NUL or a lone surrogate.
-- Every table of the users is keyed by tenant first and distributed by it: 16 partitions by hash. On Citus the shards
-- take their place: see docs/how-to/memories-in-postgresql.md.
CREATE TABLE store_facts (
    name  text PRIMARY KEY,
    value text NOT NULL
);

INSERT INTO store_facts VALUES ('identity', replace(gen_random_uuid()::text, '-', '')), ('analyser', '0');

-- `next_id` is the first id that no process has taken.
CREATE TABLE tenants (
    tenant  bigint PRIMARY KEY,
    name    text COLLATE "C" NOT NULL UNIQUE,
    next_id bigint NOT NULL DEFAULT 1
) WITH (fillfactor = 50);

CREATE TABLE models (
    model integer PRIMARY KEY,
    name  text COLLATE "C" NOT NULL UNIQUE
);

-- `counter` gives the versions of the owner's memories and embeddings. Each write updates or locks this row first, and
-- keeps it until its commit: so versions become visible in their order. `last_version` is that of the newest change of
-- a memory; `live` the number of memories that are not forgotten, and `terms_length` the sum of their lengths.
CREATE TABLE owners (
    tenant       bigint NOT NULL,
    owner        integer NOT NULL,
    kind         text COLLATE "C" NOT NULL,
    name         text COLLATE "C" NOT NULL,
    counter      bigint NOT NULL DEFAULT 0,
    last_version bigint NOT NULL DEFAULT 0,
    live         bigint NOT NULL DEFAULT 0,
    terms_length bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, owner),
    UNIQUE (tenant, kind, name)
) PARTITION BY HASH (tenant);

-- The short rows, which filters and ranking read. `uid` is random, 16 bytes, and stays with the memory in every copy of
-- it. A forgotten memory keeps its row, its id and its uid, without content.
-- `superseded_by` is the memory that holds in place of one whose time has ended, `doubted_by` a newer one that may hold
-- in its place.
-- `labels` are tags, people and paths: see `people.py`. `words` are the terms, salted with the owner: see `rows.py`.
CREATE TABLE observations (
    tenant           bigint NOT NULL,
    id               bigint NOT NULL,
    owner            integer NOT NULL,
    version          bigint NOT NULL,
    created_at       bigint NOT NULL,
    updated_at       bigint NOT NULL,
    added_at         bigint NOT NULL,
    expires_at       bigint,
    valid_from       bigint,
    valid_until      bigint,
    superseded_by    bigint,
    doubted_by       bigint,
    deleted_at       bigint,
    last_accessed_at bigint,
    confidence       double precision NOT NULL,
    importance       double precision NOT NULL,
    mention_count    bigint NOT NULL,
    token_count      bigint NOT NULL,
    length           bigint NOT NULL,
    checksum         bigint NOT NULL,
    pinned           smallint NOT NULL,
    store            text COLLATE "C" NOT NULL,
    type             text COLLATE "C" NOT NULL,
    scope            text COLLATE "C" NOT NULL,
    project          text COLLATE "C" NOT NULL,
    session          text COLLATE "C" NOT NULL,
    agent            text COLLATE "C" NOT NULL,
    source           text COLLATE "C" NOT NULL,
    speaker          text COLLATE "C" NOT NULL,
    origin           text COLLATE "C" NOT NULL,
    tags             text COLLATE "C" NOT NULL,
    related_files    text COLLATE "C" NOT NULL,
    related_people   text COLLATE "C" NOT NULL,
    labels           text[] COLLATE "C" NOT NULL,
    uid              bytea NOT NULL,
    hash             bytea NOT NULL,
    terms            bytea NOT NULL,
    words            bigint[] NOT NULL,
    PRIMARY KEY (tenant, id)
) PARTITION BY HASH (tenant);

CREATE UNIQUE INDEX observations_by_uid ON observations (tenant, uid);
CREATE INDEX observations_by_version ON observations (tenant, owner, version);
CREATE INDEX observations_by_time ON observations (tenant, owner, created_at, id) WHERE deleted_at IS NULL;
-- The index holds eight bytes of each hash; the store compares the whole hash afterwards.
CREATE INDEX observations_by_hash ON observations (tenant, owner, substring(hash FROM 1 FOR 8))
WHERE deleted_at IS NULL;
-- Memories that do not always hold are few: a search counts those that it must not see by this index.
CREATE INDEX observations_by_end ON observations (tenant, owner)
WHERE deleted_at IS NULL AND (expires_at IS NOT NULL OR valid_from IS NOT NULL OR valid_until IS NOT NULL);
CREATE INDEX observations_by_successor ON observations (tenant, superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX observations_by_doubt ON observations (tenant, doubted_by) WHERE doubted_by IS NOT NULL;
CREATE INDEX observations_by_word ON observations USING gin (words) WITH (fastupdate = off);

-- The texts of a live memory, apart from its short row. `folded` holds the words that phrases and prefixes are compared
-- with: see `reads.py`. `evidence` holds the words that the memory rests on.
CREATE TABLE texts (
    tenant    bigint NOT NULL,
    id        bigint NOT NULL,
    title     text COLLATE "C" NOT NULL,
    summary   text COLLATE "C" NOT NULL,
    facts     text COLLATE "C" NOT NULL,
    narrative text COLLATE "C" NOT NULL,
    keywords  text COLLATE "C" NOT NULL,
    folded    text COLLATE "C" NOT NULL,
    evidence  text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id)
) PARTITION BY HASH (tenant);

-- `data` holds the values of all passages. Values that a `halfvec` cannot hold are in `raw`, as they were given.
CREATE TABLE embeddings (
    tenant   bigint NOT NULL,
    memory   bigint NOT NULL,
    model    integer NOT NULL,
    owner    integer NOT NULL,
    version  bigint NOT NULL,
    checksum bigint NOT NULL,
    data     halfvec,
    raw      bytea,
    PRIMARY KEY (tenant, memory, model)
) PARTITION BY HASH (tenant);

CREATE INDEX embeddings_by_version ON embeddings (tenant, owner, model, version);

-- How many memories of an owner have an embedding by a model.
CREATE TABLE embedded (
    tenant  bigint NOT NULL,
    owner   integer NOT NULL,
    model   integer NOT NULL,
    vectors bigint NOT NULL,
    PRIMARY KEY (tenant, owner, model)
) PARTITION BY HASH (tenant);

-- The changes of a memory. Its addition has no entry, because the memory's own row records it.
CREATE TABLE history (
    tenant   bigint NOT NULL,
    memory   bigint NOT NULL,
    version  bigint NOT NULL,
    at       bigint NOT NULL,
    checksum bigint NOT NULL,
    event    text COLLATE "C" NOT NULL,
    old      text COLLATE "C" NOT NULL,
    new      text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, memory, version)
) PARTITION BY HASH (tenant);

-- A session belongs to an agent: two agents may have sessions of the same name. Checksums: see `checksums.py`.
CREATE TABLE session_summaries (
    tenant            bigint NOT NULL,
    owner             integer NOT NULL,
    agent             text COLLATE "C" NOT NULL,
    session           text COLLATE "C" NOT NULL,
    request           text COLLATE "C" NOT NULL,
    outcome           text COLLATE "C" NOT NULL,
    decisions         text COLLATE "C" NOT NULL,
    open_items        text COLLATE "C" NOT NULL,
    observation_count bigint NOT NULL,
    created_at        bigint NOT NULL,
    checksum          bigint NOT NULL,
    PRIMARY KEY (tenant, owner, agent, session)
) PARTITION BY HASH (tenant);

-- What the capture of an owner's memories took on a day (UTC), and the turns from which they were captured. No text.
CREATE TABLE capture_days (
    tenant   bigint NOT NULL,
    owner    integer NOT NULL,
    day      date NOT NULL,
    memories bigint NOT NULL,
    calls    bigint NOT NULL,
    tokens   bigint NOT NULL,
    PRIMARY KEY (tenant, owner, day)
) PARTITION BY HASH (tenant);

CREATE TABLE captured_turns (
    tenant bigint NOT NULL,
    owner  integer NOT NULL,
    turn   text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, owner, turn)
) PARTITION BY HASH (tenant);

-- The turns that wait to be captured: see `store/turn_queue.py`. Captured turns leave no row here. A turn without
-- `due_at` is parked.
CREATE SEQUENCE waiting_turn_numbers;

CREATE TABLE waiting_turns (
    tenant    bigint NOT NULL,
    owner     integer NOT NULL,
    key       text COLLATE "C" NOT NULL,
    number    bigint NOT NULL DEFAULT nextval('waiting_turn_numbers'),
    turn      text COLLATE "C" NOT NULL,
    session   text COLLATE "C" NOT NULL,
    project   text COLLATE "C" NOT NULL,
    agent     text COLLATE "C" NOT NULL,
    store     text NOT NULL,
    content   text NOT NULL,
    queued_at bigint NOT NULL,
    attempts  integer NOT NULL DEFAULT 0,
    due_at    bigint,
    error     text NOT NULL DEFAULT '',
    PRIMARY KEY (tenant, owner, key)
) PARTITION BY HASH (tenant);

CREATE INDEX waiting_turns_by_session ON waiting_turns (tenant, owner, session, number);

-- Keyed hashes of forgotten texts, by which capture knows the same words again: see `store/fingerprint.py`.
CREATE TABLE forgotten_texts (
    tenant bigint NOT NULL,
    owner  integer NOT NULL,
    digest bytea NOT NULL,
    PRIMARY KEY (tenant, owner, digest)
) PARTITION BY HASH (tenant);

DO $$
DECLARE
    place record;
BEGIN
    FOR place IN
        SELECT t.name, n.number, t.settings
        FROM generate_series(0, 15) AS n (number)
        CROSS JOIN (
            VALUES
                ('owners', 'fillfactor = 50'), ('observations', 'fillfactor = 90'), ('texts', 'fillfactor = 100'),
                ('embeddings', 'toast_tuple_target = 8160'), ('embedded', 'fillfactor = 50'),
                ('history', 'fillfactor = 100'), ('session_summaries', 'fillfactor = 90'),
                ('capture_days', 'fillfactor = 50'), ('captured_turns', 'fillfactor = 100'),
                ('waiting_turns', 'fillfactor = 100'), ('forgotten_texts', 'fillfactor = 100')
        ) AS t (name, settings)
    LOOP
        EXECUTE format(
            'CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS 16, REMAINDER %s) WITH (%s)',
            place.name || '_' || place.number, place.name, place.number, place.settings
        );
    END LOOP;
END $$;
