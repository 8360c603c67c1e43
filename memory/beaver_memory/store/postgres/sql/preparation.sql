-- The version of a store, and the extension that it needs.

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
