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
