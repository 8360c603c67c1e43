-- Reads of visible memories. `{conditions}` are the filters, built by `sql_filters.py`, and `{columns}` those that
-- `rows.memories_of` reads.

-- name: memories_by_id
-- LATERAL with OFFSET looks up each id by the key, whatever PostgreSQL believes of a table that it has no statistics of.
SELECT {columns}
FROM unnest(%(ids)s::bigint[]) AS w (id)
CROSS JOIN LATERAL (SELECT * FROM observations AS r WHERE r.tenant = %(tenant)s AND r.id = w.id OFFSET 0) AS o
JOIN texts AS t ON t.tenant = %(tenant)s AND t.id = o.id
WHERE o.owner = ANY(%(owners)s) AND {conditions}

-- name: lock_owners_of
SELECT owner FROM owners
WHERE tenant = %(tenant)s AND owner = ANY(%(owners)s::integer[]) AND owner IN (
    SELECT o.owner FROM observations AS o WHERE o.tenant = %(tenant)s AND o.id = ANY(%(ids)s)
)
ORDER BY owner
FOR NO KEY UPDATE

-- name: memories_by_id_locked
SELECT {columns}
FROM observations AS o
JOIN texts AS t ON t.tenant = %(tenant)s AND t.id = o.id
WHERE o.tenant = %(tenant)s AND o.id = ANY(%(ids)s) AND o.owner = ANY(%(owners)s) AND {conditions}
ORDER BY o.id
FOR NO KEY UPDATE OF o

-- name: walk
-- Each owner's rows come from an index in order of time.
SELECT {columns}
FROM unnest(%(owners)s::integer[]) AS w (owner)
CROSS JOIN LATERAL (
    SELECT *
    FROM observations AS o
    WHERE o.tenant = %(tenant)s AND o.owner = w.owner AND {conditions} {bounds}
    ORDER BY o.created_at {order}, o.id {order}
    LIMIT %(limit)s
) AS o
JOIN texts AS t ON t.tenant = %(tenant)s AND t.id = o.id
ORDER BY o.created_at {order}, o.id {order}
LIMIT %(limit)s

-- name: bounds
AND (o.created_at, o.id) {side} (%(at)s, %(id)s)

-- name: added_at
SELECT added_at FROM observations WHERE tenant = %(tenant)s AND id = %(id)s

-- name: history
SELECT event, at, old, new, checksum
FROM history
WHERE tenant = %(tenant)s AND memory = %(id)s
ORDER BY version DESC

-- name: recalled
-- The versions of each owner as in `versions.sql`, and beside them its memories as in `reads.sql`, or NULL.
SELECT
    v.owner, v.last_version, coalesce((
        SELECT max(e.version)
        FROM embeddings AS e
        WHERE e.tenant = %(tenant)s AND e.owner = v.owner AND e.model = %(model)s
    ), 0),
    m.*
FROM owners AS v
LEFT JOIN (
    SELECT {columns}
    FROM unnest(%(ids)s::bigint[]) AS w (id)
    CROSS JOIN LATERAL (SELECT * FROM observations AS r WHERE r.tenant = %(tenant)s AND r.id = w.id OFFSET 0) AS o
    JOIN texts AS t ON t.tenant = %(tenant)s AND t.id = o.id
    WHERE {conditions}
) AS m ON m.owner = v.owner
WHERE v.tenant = %(tenant)s AND v.owner = ANY(%(owners)s::integer[])

-- name: matching
-- `{conditions}` are the filters, built by `sql_filters.py`, and one `holds` for each pattern.
SELECT o.id
FROM observations AS o
JOIN texts AS t ON t.tenant = %(tenant)s AND t.id = o.id
WHERE o.tenant = %(tenant)s AND o.owner = ANY(%(owners)s::integer[]) AND {conditions}
ORDER BY o.created_at DESC, o.id DESC
LIMIT %(limit)s

-- name: matching_with_words
-- Words are salted with the owner, so the index by words alone finds few others: see `candidates.sql`.
SELECT o.id
FROM observations AS o
CROSS JOIN LATERAL (SELECT r.folded FROM texts AS r WHERE r.tenant = %(tenant)s AND r.id = o.id OFFSET 0) AS t
WHERE o.tenant = %(tenant)s AND o.owner + 0 = ANY(%(owners)s::integer[]) AND {conditions}
ORDER BY o.created_at DESC, o.id DESC
LIMIT %(limit)s

-- name: has_words
o.words @> %({words})s::bigint[]

-- name: holds
strpos(t.folded, %({part})s) > 0
