-- The search for the same memory.

-- name: same_uid
SELECT id, mention_count, expires_at
FROM observations INDEXED BY observations_by_uid
WHERE tenant = :tenant AND uid = :uid AND owner = :owner AND deleted_at IS NULL

-- name: same_memory
-- The hash finds candidates; two memories are the same if text, owner, place and time of validity are the same.
SELECT id, mention_count, expires_at
FROM observations INDEXED BY observations_by_hash
WHERE tenant = :tenant AND owner = :owner AND substr(hash, 1, 8) = substr(:hash, 1, 8) AND hash = :hash
    AND deleted_at IS NULL
    AND title = :title AND narrative = :narrative AND facts = :facts
    AND store = :store AND agent = :agent AND scope = :scope
    AND (scope = 'global' OR project = :project) AND (scope <> 'session' OR session = :session)
    AND valid_from IS :valid_from AND valid_until IS :valid_until
    AND (expires_at IS NULL OR expires_at > :now OR expires_at = :expires_at)
ORDER BY row DESC
LIMIT 1
