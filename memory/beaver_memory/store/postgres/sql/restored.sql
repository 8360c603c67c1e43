-- Copies of memories from another store.

-- name: drop_memories
DELETE FROM observations
WHERE tenant = %(tenant)s AND id = ANY(%(ids)s::bigint[])
RETURNING (deleted_at IS NULL)::integer, length

-- name: raise_counts
UPDATE owners
SET counter = greatest(counter, %(version)s), last_version = greatest(last_version, %(version)s),
    live = live + %(live)s, terms_length = terms_length + %(length)s
WHERE tenant = %(tenant)s AND owner = %(owner)s

-- name: raise_counter
UPDATE owners SET counter = greatest(counter, %(version)s) WHERE tenant = %(tenant)s AND owner = %(owner)s

-- name: raise_ids
UPDATE tenants SET next_id = greatest(next_id, %(next)s) WHERE tenant = %(tenant)s
