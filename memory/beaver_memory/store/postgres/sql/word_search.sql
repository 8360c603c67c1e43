-- The search for phrases and prefixes, newest first.

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
