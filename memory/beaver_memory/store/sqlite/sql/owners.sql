-- Tenants and owners, and their numbers.

-- name: find_tenant
SELECT number FROM tenants WHERE name = ?

-- name: add_tenant
INSERT INTO tenants (name) VALUES (?) ON CONFLICT DO NOTHING

-- name: find_owner
SELECT w.tenant, w.number
FROM tenants AS t
JOIN owners AS w ON w.tenant = t.number
WHERE t.name = ? AND w.user = ? AND w.kind = ?

-- name: add_owner
INSERT INTO owners (tenant, number, user, kind)
SELECT number, (SELECT coalesce(max(number), 0) + 1 FROM owners), ?2, ?3 FROM tenants WHERE name = ?1
RETURNING tenant, number

-- name: owners
SELECT w.number, t.name, w.user, w.kind FROM owners AS w JOIN tenants AS t ON t.number = w.tenant

-- name: live_owners
SELECT t.name, w.user, w.kind
FROM owners AS w
JOIN tenants AS t ON t.number = w.tenant
WHERE w.live > 0 AND (?1 IS NULL OR t.name = ?1)
ORDER BY w.number

-- name: live
SELECT live FROM owners WHERE tenant = ? AND number = ?

-- name: holdings
-- The rows that tell of an owner, by place.
SELECT 'memories', count(*)
FROM observations
WHERE tenant = :tenant AND owner = :owner
    AND (deleted_at IS NULL OR title != '' OR narrative != '' OR evidence != '')
UNION ALL
SELECT 'vectors', count(*) FROM observation_embeddings WHERE tenant = :tenant AND owner = :owner
UNION ALL
SELECT 'history', count(*)
FROM observation_history
WHERE tenant = :tenant AND (old != '{}' OR new != '{}')
    AND memory IN (SELECT id FROM observations WHERE tenant = :tenant AND owner = :owner)
UNION ALL
SELECT 'labels', count(*) FROM observation_labels WHERE tenant = :tenant AND owner = :owner
UNION ALL
SELECT 'people', count(*) FROM people WHERE tenant = :tenant AND owner = :owner
UNION ALL
SELECT 'summaries', count(*) FROM session_summaries WHERE tenant = :tenant AND owner = :owner
UNION ALL
SELECT 'waiting turns', count(*) FROM waiting_turns WHERE tenant = :tenant AND owner = :owner
UNION ALL
SELECT 'captured turns', count(*) FROM captured_turns WHERE tenant = :tenant AND owner = :owner
UNION ALL
SELECT 'days of capture', count(*) FROM capture_days WHERE tenant = :tenant AND owner = :owner
UNION ALL
SELECT 'marks of forgotten texts', count(*) FROM forgotten_texts WHERE tenant = :tenant AND owner = :owner

-- name: drop_history
DELETE FROM observation_history
WHERE tenant = :tenant AND memory IN (SELECT id FROM observations WHERE tenant = :tenant AND owner = :owner)

-- name: drop_embeddings
DELETE FROM observation_embeddings WHERE tenant = :tenant AND owner = :owner

-- name: drop_labels
DELETE FROM observation_labels WHERE tenant = :tenant AND owner = :owner

-- name: drop_unembedded
DELETE FROM unembedded WHERE tenant = :tenant AND owner = :owner

-- name: drop_summaries
DELETE FROM session_summaries WHERE tenant = :tenant AND owner = :owner

-- name: drop_people
DELETE FROM people WHERE tenant = :tenant AND owner = :owner

-- name: drop_days
DELETE FROM capture_days WHERE tenant = :tenant AND owner = :owner

-- name: drop_turns
DELETE FROM captured_turns WHERE tenant = :tenant AND owner = :owner

-- name: drop_forgotten
DELETE FROM forgotten_texts WHERE tenant = :tenant AND owner = :owner

-- name: drop_rows
DELETE FROM observations WHERE tenant = :tenant AND owner = :owner

-- name: drop_owner
DELETE FROM owners WHERE tenant = :tenant AND number = :owner

-- name: lower_last_indexed
-- The next row may get the number of one that is gone, and is not in the word index yet.
UPDATE indexed_words SET last = min(last, (SELECT coalesce(max(row), 0) FROM observations))
