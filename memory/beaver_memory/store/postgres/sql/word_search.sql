-- The search for phrases and prefixes, newest first.

-- name: matching
-- `{conditions}` are the filters, built by `sql_filters.py`, and one `holds` for each pattern.
SELECT o.id
FROM observations AS o
JOIN texts AS t ON t.tenant = %(tenant)s AND t.id = o.id
WHERE o.tenant = %(tenant)s AND o.owner = ANY(%(owners)s::integer[]) AND {conditions}
ORDER BY o.created_at DESC, o.id DESC
LIMIT %(limit)s

-- name: holds
strpos(t.folded, %({part})s) > 0
