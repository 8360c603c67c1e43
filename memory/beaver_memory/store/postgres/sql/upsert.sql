-- The search for the same memories, and their mentions.

-- name: same_hashes
-- The hashes find candidates; two memories are the same if text, owner, place and time of validity are the same.
SELECT {columns}
FROM observations AS o
JOIN texts AS t ON t.tenant = %(tenant)s AND t.id = o.id
WHERE o.tenant = %(tenant)s AND o.owner = %(owner)s AND substring(o.hash FROM 1 FOR 8) = ANY(%(starts)s::bytea[])
    AND o.hash = ANY(%(hashes)s::bytea[]) AND o.deleted_at IS NULL

-- name: same_hashes_locked
SELECT {columns}
FROM observations AS o
JOIN texts AS t ON t.tenant = %(tenant)s AND t.id = o.id
WHERE o.tenant = %(tenant)s AND o.owner = %(owner)s AND substring(o.hash FROM 1 FOR 8) = ANY(%(starts)s::bytea[])
    AND o.hash = ANY(%(hashes)s::bytea[]) AND o.deleted_at IS NULL
ORDER BY o.id
FOR NO KEY UPDATE OF o

-- name: same_uids
SELECT {columns}
FROM observations AS o
JOIN texts AS t ON t.tenant = %(tenant)s AND t.id = o.id
WHERE o.tenant = %(tenant)s AND o.owner = %(owner)s AND o.uid = ANY(%(uids)s::bytea[]) AND o.deleted_at IS NULL

-- name: same_uids_locked
SELECT {columns}
FROM observations AS o
JOIN texts AS t ON t.tenant = %(tenant)s AND t.id = o.id
WHERE o.tenant = %(tenant)s AND o.owner = %(owner)s AND o.uid = ANY(%(uids)s::bytea[]) AND o.deleted_at IS NULL
ORDER BY o.id
FOR NO KEY UPDATE OF o

-- name: repeat_memory
UPDATE observations
SET mention_count = %(mentions)s, expires_at = %(expires)s, updated_at = %(now)s, version = %(version)s,
    checksum = %(checksum)s
WHERE tenant = %(tenant)s AND id = %(id)s

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
