-- The terms of memories, and the analyser that made them.

-- name: analyser
SELECT value FROM store_facts WHERE name = 'analyser'

-- name: set_analyser
UPDATE store_facts SET value = %(fact)s WHERE name = 'analyser'

-- name: own_terms
-- The lock that writers share, alone.
SELECT pg_advisory_xact_lock(4773621905713302)

-- name: following_memories
-- Of the whole store. `{columns}` are those that `rows.stored_of` reads.
SELECT o.tenant, o.id, o.owner, {columns}
FROM observations AS o
JOIN texts AS t ON t.tenant = o.tenant AND t.id = o.id
WHERE (o.tenant, o.id) > (%(tenant)s, %(id)s) AND o.deleted_at IS NULL
ORDER BY o.tenant, o.id
LIMIT %(limit)s

-- name: set_terms
UPDATE observations SET terms = %(terms)s, length = %(length)s, words = %(words)s::bigint[], checksum = %(checksum)s
WHERE tenant = %(tenant)s AND id = %(id)s

-- name: add_length
UPDATE owners SET terms_length = terms_length + %(length)s WHERE tenant = %(tenant)s AND owner = %(owner)s
