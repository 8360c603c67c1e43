-- Figures and rules of one tenant.

-- name: find_tenant
SELECT tenant FROM tenants WHERE name = %(name)s

-- name: count_owners
SELECT count(*) FROM owners WHERE tenant = %(tenant)s

-- name: count_forgotten
SELECT count(*) FROM observations WHERE tenant = %(tenant)s AND deleted_at IS NOT NULL

-- name: count_by_store
SELECT store, count(*) FROM observations WHERE tenant = %(tenant)s AND deleted_at IS NULL GROUP BY store

-- name: count_by_type
SELECT type, count(*) FROM observations WHERE tenant = %(tenant)s AND deleted_at IS NULL GROUP BY type

-- name: count_by_model
SELECT m.name, sum(e.vectors)
FROM embedded AS e
JOIN models AS m ON m.model = e.model
WHERE e.tenant = %(tenant)s
GROUP BY m.name
HAVING sum(e.vectors) > 0

-- name: count_bytes
SELECT (SELECT coalesce(sum(pg_column_size(o.*)), 0) FROM observations AS o WHERE o.tenant = %(tenant)s)
    + (SELECT coalesce(sum(pg_column_size(t.*)), 0) FROM texts AS t WHERE t.tenant = %(tenant)s)
    + (SELECT coalesce(sum(pg_column_size(e.*)), 0) FROM embeddings AS e WHERE e.tenant = %(tenant)s)

-- name: wrong_texts
SELECT count(*)
FROM (SELECT id FROM observations WHERE tenant = %(tenant)s AND deleted_at IS NULL) AS o
FULL JOIN (SELECT id FROM texts WHERE tenant = %(tenant)s) AS t ON t.id = o.id
WHERE o.id IS NULL OR t.id IS NULL

-- name: wrong_embeddings
SELECT count(*)
FROM embeddings AS e
LEFT JOIN observations AS o ON o.tenant = %(tenant)s AND o.id = e.memory
WHERE e.tenant = %(tenant)s AND (o.id IS NULL OR o.deleted_at IS NOT NULL OR o.owner <> e.owner)
