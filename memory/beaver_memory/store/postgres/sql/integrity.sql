-- Figures of a store, and the rules that its tables keep, of the whole store. Each `wrong_…` counts the rows that break
-- a rule.

-- name: count_forgotten
SELECT count(*) FROM observations WHERE deleted_at IS NOT NULL

-- name: count_owners
SELECT count(*) FROM owners

-- name: count_by_store
SELECT store, count(*) FROM observations WHERE deleted_at IS NULL GROUP BY store

-- name: count_by_type
SELECT type, count(*) FROM observations WHERE deleted_at IS NULL GROUP BY type

-- name: count_by_model
SELECT m.name, sum(e.vectors)
FROM models AS m
JOIN embedded AS e ON e.model = m.model
GROUP BY m.name
HAVING sum(e.vectors) > 0

-- name: count_bytes
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = current_schema() AND c.relkind = 'r'

-- name: tenants
SELECT tenant, name FROM tenants ORDER BY tenant

-- name: wrong_counts_of_owners
SELECT count(*)
FROM owners AS w
LEFT JOIN (
    SELECT tenant, owner, sum(length) AS length
    FROM observations
    WHERE deleted_at IS NULL
    GROUP BY tenant, owner
) AS o ON o.tenant = w.tenant AND o.owner = w.owner
WHERE w.terms_length <> coalesce(o.length, 0)

-- name: miscounted_owners
-- The owners of a tenant, with how many memories were counted and how many are there.
SELECT w.name, w.kind, w.live, coalesce(o.live, 0)
FROM owners AS w
LEFT JOIN (
    SELECT owner, count(*) AS live FROM observations WHERE tenant = %(tenant)s AND deleted_at IS NULL GROUP BY owner
) AS o ON o.owner = w.owner
WHERE w.tenant = %(tenant)s AND w.live <> coalesce(o.live, 0)

-- name: wrong_versions
SELECT count(*)
FROM observations AS o
LEFT JOIN owners AS w ON w.tenant = o.tenant AND w.owner = o.owner
WHERE w.owner IS NULL OR o.version > w.last_version OR w.last_version > w.counter

-- name: wrong_twins
SELECT count(*)
FROM (SELECT 1 FROM observations GROUP BY tenant, owner, version HAVING count(*) > 1) AS twins

-- name: wrong_successors
SELECT count(*)
FROM observations AS o
LEFT JOIN observations AS s ON s.tenant = o.tenant AND s.id = o.superseded_by
WHERE o.superseded_by IS NOT NULL AND (s.id IS NULL OR s.deleted_at IS NOT NULL)

-- name: wrong_doubts
SELECT count(*)
FROM observations AS o
LEFT JOIN observations AS s ON s.tenant = o.tenant AND s.id = o.doubted_by
WHERE o.doubted_by IS NOT NULL AND (s.id IS NULL OR s.deleted_at IS NOT NULL)

-- name: wrong_ids
SELECT count(*)
FROM observations AS o
LEFT JOIN tenants AS t ON t.tenant = o.tenant
WHERE t.tenant IS NULL OR o.id >= t.next_id

-- name: wrong_texts
SELECT count(*)
FROM (SELECT tenant, id FROM observations WHERE deleted_at IS NULL) AS o
FULL JOIN texts AS t ON t.tenant = o.tenant AND t.id = o.id
WHERE o.id IS NULL OR t.id IS NULL

-- name: wrong_embeddings
SELECT count(*)
FROM embeddings AS e
LEFT JOIN observations AS o ON o.tenant = e.tenant AND o.id = e.memory
LEFT JOIN owners AS w ON w.tenant = e.tenant AND w.owner = e.owner
WHERE o.id IS NULL OR o.deleted_at IS NOT NULL OR o.owner <> e.owner OR w.owner IS NULL OR e.version > w.counter

-- name: wrong_counts_of_embeddings
SELECT count(*)
FROM embedded AS c
FULL JOIN (
    SELECT tenant, owner, model, count(*) AS vectors FROM embeddings GROUP BY tenant, owner, model
) AS e ON e.tenant = c.tenant AND e.owner = c.owner AND e.model = c.model
WHERE coalesce(c.vectors, 0) <> coalesce(e.vectors, 0)

-- name: wrong_history
SELECT count(*)
FROM history AS h
LEFT JOIN observations AS o ON o.tenant = h.tenant AND o.id = h.memory
WHERE o.id IS NULL

-- name: memories_after
-- `{columns}` are those that `rows.stored_of` reads.
SELECT o.id, o.owner, o.labels, o.words, t.folded, {columns}
FROM observations AS o
JOIN texts AS t ON t.tenant = %(tenant)s AND t.id = o.id
WHERE o.tenant = %(tenant)s AND o.id > %(after)s AND o.deleted_at IS NULL
ORDER BY o.id
LIMIT %(limit)s

-- name: histories
SELECT memory, event, at, old, new, checksum FROM history WHERE tenant = %(tenant)s

-- name: vectors
SELECT e.memory, m.name, e.data, e.raw, e.checksum
FROM embeddings AS e
JOIN models AS m ON m.model = e.model
WHERE e.tenant = %(tenant)s

-- name: summaries
SELECT owner, agent, session, request, outcome, decisions, open_items, observation_count, created_at, checksum
FROM session_summaries
WHERE tenant = %(tenant)s
