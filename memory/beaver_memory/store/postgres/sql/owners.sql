-- Tenants and owners with their numbers, and blocks of ids.

-- name: find_tenant
SELECT tenant FROM tenants WHERE name = %(name)s

-- name: add_tenant
INSERT INTO tenants (tenant, name)
SELECT coalesce(max(tenant), 0) + 1, %(name)s FROM tenants
ON CONFLICT DO NOTHING

-- name: find_owner
SELECT owner FROM owners WHERE tenant = %(tenant)s AND kind = %(kind)s AND name = %(name)s

-- name: add_owner
INSERT INTO owners (tenant, owner, kind, name)
SELECT %(tenant)s, coalesce(max(owner), 0) + 1, %(kind)s, %(name)s FROM owners WHERE tenant = %(tenant)s
ON CONFLICT DO NOTHING

-- name: take_ids
UPDATE tenants SET next_id = next_id + %(count)s WHERE tenant = %(tenant)s RETURNING next_id

-- name: live
SELECT live FROM owners WHERE tenant = %(tenant)s AND owner = %(owner)s

-- name: live_owners
-- Of the whole store; with a name, of that tenant.
SELECT t.name, o.name, o.kind
FROM owners AS o
JOIN tenants AS t ON t.tenant = o.tenant
WHERE o.live > 0 AND (%(tenant)s::text IS NULL OR t.name = %(tenant)s)
ORDER BY o.tenant, o.owner

-- name: owners_of_tenant
SELECT o.owner, t.name, o.name, o.kind
FROM owners AS o
JOIN tenants AS t ON t.tenant = o.tenant
WHERE o.tenant = %(tenant)s

-- name: holdings
-- The rows that tell of an owner, by place.
SELECT 'memories', count(*)
FROM observations WHERE tenant = %(tenant)s AND owner = %(owner)s AND deleted_at IS NULL
UNION ALL
SELECT 'texts', count(*)
FROM texts
WHERE tenant = %(tenant)s AND id IN (SELECT id FROM observations WHERE tenant = %(tenant)s AND owner = %(owner)s)
UNION ALL
SELECT 'vectors', count(*) FROM embeddings WHERE tenant = %(tenant)s AND owner = %(owner)s
UNION ALL
SELECT 'history', count(*)
FROM history
WHERE tenant = %(tenant)s AND (old != '{}' OR new != '{}')
    AND memory IN (SELECT id FROM observations WHERE tenant = %(tenant)s AND owner = %(owner)s)
UNION ALL
SELECT 'labels', coalesce(sum(cardinality(labels)), 0)
FROM observations WHERE tenant = %(tenant)s AND owner = %(owner)s
UNION ALL
SELECT 'summaries', count(*) FROM session_summaries WHERE tenant = %(tenant)s AND owner = %(owner)s
UNION ALL
SELECT 'waiting turns', count(*) FROM waiting_turns WHERE tenant = %(tenant)s AND owner = %(owner)s
UNION ALL
SELECT 'captured turns', count(*) FROM captured_turns WHERE tenant = %(tenant)s AND owner = %(owner)s
UNION ALL
SELECT 'days of capture', count(*) FROM capture_days WHERE tenant = %(tenant)s AND owner = %(owner)s
UNION ALL
SELECT 'marks of forgotten texts', count(*) FROM forgotten_texts WHERE tenant = %(tenant)s AND owner = %(owner)s

-- name: drop_history
DELETE FROM history
WHERE tenant = %(tenant)s AND memory IN (SELECT id FROM observations WHERE tenant = %(tenant)s AND owner = %(owner)s)

-- name: drop_embeddings
DELETE FROM embeddings WHERE tenant = %(tenant)s AND owner = %(owner)s

-- name: drop_embedded
DELETE FROM embedded WHERE tenant = %(tenant)s AND owner = %(owner)s

-- name: drop_summaries
DELETE FROM session_summaries WHERE tenant = %(tenant)s AND owner = %(owner)s

-- name: drop_days
DELETE FROM capture_days WHERE tenant = %(tenant)s AND owner = %(owner)s

-- name: drop_turns
DELETE FROM captured_turns WHERE tenant = %(tenant)s AND owner = %(owner)s

-- name: drop_forgotten
DELETE FROM forgotten_texts WHERE tenant = %(tenant)s AND owner = %(owner)s

-- name: drop_rows
DELETE FROM observations WHERE tenant = %(tenant)s AND owner = %(owner)s

-- name: drop_owner
DELETE FROM owners WHERE tenant = %(tenant)s AND owner = %(owner)s
