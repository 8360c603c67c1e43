-- What every connection needs, and the borders of transactions.

-- name: settings
-- A generic plan locks all partitions of a table, a custom one locks the partition of the tenant: see `reads.py`.
SELECT
    set_config('search_path', %(path)s, false),
    set_config('plan_cache_mode', %(planning)s, false),
    set_config('jit', 'off', false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('lock_timeout', '30s', false),
    set_config('idle_in_transaction_session_timeout', '60s', false),
    CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END

-- name: identity
SELECT value FROM store_facts WHERE name = 'identity'

-- name: begin
BEGIN

-- name: begin_moment
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY

-- name: commit
COMMIT

-- name: share_terms
-- Writers share this lock, and a change of the analyser takes it alone: see `rebuild_terms.py`.
SELECT pg_advisory_xact_lock_shared(4773621905713302)

-- name: lock_migrations
SELECT pg_advisory_xact_lock(4773621905713301)

-- name: vector_schema
SELECT n.nspname FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace WHERE e.extname = 'vector'

-- name: add_vectors
CREATE EXTENSION IF NOT EXISTS vector

-- name: has_schema
SELECT 1 FROM pg_namespace WHERE nspname = %(schema)s

-- name: make_schema
CREATE SCHEMA {schema}

-- name: set_path
SELECT set_config('search_path', %(path)s, true)

-- name: make_history
CREATE TABLE schema_version (
    version    integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
)

-- name: add_version
INSERT INTO schema_version (version) VALUES (%(version)s)

-- name: has_versions
SELECT 1
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = %(schema)s AND c.relname = 'schema_version'

-- name: version
SELECT coalesce(max(version), 0) FROM {schema}.schema_version
