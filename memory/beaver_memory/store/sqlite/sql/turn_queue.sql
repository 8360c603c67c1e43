-- The turns that wait to be captured.

-- name: put
INSERT INTO waiting_turns (
    tenant, owner, key, turn, session, project, agent, store, content, queued_at, due_at
) VALUES (
    :tenant, :owner, :key, :turn, :session, :project, :agent, :store, :content, :queued_at, :due_at
) ON CONFLICT (tenant, owner, key) DO NOTHING

-- name: sessions
-- A lease or a pause that ends later than any that begins now was set by a clock that has gone back since.
SELECT t.name, w.user, w.kind, q.session, q.project, q.agent, q.store
FROM waiting_turns AS q
JOIN tenants AS t ON t.number = q.tenant
JOIN owners AS w ON w.tenant = q.tenant AND w.number = q.owner
WHERE q.due_at IS NOT NULL AND (:tenant IS NULL OR t.name = :tenant) AND (:project IS NULL OR q.project = :project)
GROUP BY q.tenant, q.owner, q.session, q.project, q.agent, q.store
HAVING max(q.due_at) <= :now OR max(q.due_at) > :latest OR (min(q.attempts) = 0 AND max(q.queued_at) < :before)
ORDER BY min(q.number)
LIMIT :limit

-- name: park
UPDATE waiting_turns
SET due_at = NULL, error = 'interrupted'
WHERE tenant = :tenant AND owner = :owner AND session = :session
    AND project = :project AND agent = :agent AND store = :store
    AND attempts >= :most AND (due_at <= :now OR due_at > :latest)

-- name: claim
UPDATE waiting_turns
SET attempts = attempts + 1, due_at = :until
WHERE number IN (
    SELECT number FROM waiting_turns
    WHERE tenant = :tenant AND owner = :owner AND session = :session
        AND project = :project AND agent = :agent AND store = :store
        AND due_at IS NOT NULL AND (attempts = 0 OR due_at <= :now OR due_at > :latest)
    ORDER BY number
    LIMIT :limit
)
RETURNING key, turn, session, project, agent, store, content, queued_at, attempts, due_at, error, number

-- name: remove
DELETE FROM waiting_turns WHERE tenant = ? AND owner = ? AND key = ? AND attempts = ?

-- name: postpone
UPDATE waiting_turns SET due_at = ?, error = ? WHERE tenant = ? AND owner = ? AND key = ? AND attempts = ?

-- name: count_parked
SELECT count(*) FROM waiting_turns WHERE due_at IS NULL

-- name: owners
SELECT DISTINCT t.name, w.user, w.kind
FROM waiting_turns AS q
JOIN tenants AS t ON t.number = q.tenant
JOIN owners AS w ON w.tenant = q.tenant AND w.number = q.owner
WHERE :tenant IS NULL OR t.name = :tenant
ORDER BY q.tenant, q.owner

-- name: waiting
SELECT key, turn, session, project, agent, store, content, queued_at, attempts, due_at, error, number
FROM waiting_turns
WHERE tenant = :tenant AND owner = :owner AND (:project IS NULL OR project = :project)
ORDER BY number
LIMIT :limit

-- name: retry
UPDATE waiting_turns
SET due_at = :now, attempts = 0, error = ''
WHERE tenant = :tenant AND owner = :owner AND due_at IS NULL AND (:key = '' OR key = :key)
    AND (:project IS NULL OR project = :project)

-- name: drop
DELETE FROM waiting_turns WHERE tenant = :tenant AND owner = :owner AND key = :key

-- name: erase
DELETE FROM waiting_turns
WHERE tenant = :tenant AND owner = :owner AND (NOT :one_session OR session = :session)
    AND (:project IS NULL OR project = :project)

-- name: spent
SELECT memories, calls, tokens FROM capture_days WHERE tenant = ? AND owner = ? AND day = ?

-- name: spend
INSERT INTO capture_days (tenant, owner, day, memories, calls, tokens)
VALUES (:tenant, :owner, :day, :memories, :calls, :tokens)
ON CONFLICT (tenant, owner, day) DO UPDATE SET
    memories = memories + excluded.memories, calls = calls + excluded.calls, tokens = tokens + excluded.tokens
WHERE memories + excluded.memories <= :most_memories
    AND calls + excluded.calls <= :most_calls
    AND tokens + excluded.tokens <= :most_tokens

-- name: is_captured
SELECT 1 FROM captured_turns WHERE tenant = ? AND owner = ? AND turn = ?

-- name: mark_captured
INSERT INTO captured_turns (tenant, owner, turn) VALUES (?, ?, ?) ON CONFLICT DO NOTHING

-- name: mark_forgotten
INSERT INTO forgotten_texts (tenant, owner, digest) VALUES (?, ?, ?) ON CONFLICT DO NOTHING

-- name: is_forgotten
SELECT 1 FROM forgotten_texts WHERE tenant = ? AND owner = ? AND digest = ?
