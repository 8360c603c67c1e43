-- The turns that wait to be captured.

-- name: put
INSERT INTO waiting_turns (
    tenant, owner, key, turn, session, project, agent, store, content, queued_at, due_at
) VALUES (
    %(tenant)s, %(owner)s, %(key)s, %(turn)s, %(session)s, %(project)s, %(agent)s, %(store)s, %(content)s,
    %(queued_at)s, %(due_at)s
) ON CONFLICT (tenant, owner, key) DO NOTHING

-- name: tenants
-- Of the whole store; with a name, that tenant.
SELECT tenant, name FROM tenants
WHERE %(name)s::text IS NULL OR name = %(name)s
ORDER BY tenant

-- name: sessions
-- A lease or a pause that ends later than any that begins now was set by a clock that has gone back since.
SELECT w.name, w.kind, q.session, q.project, q.agent, q.store
FROM waiting_turns AS q
JOIN owners AS w ON w.tenant = q.tenant AND w.owner = q.owner
WHERE q.tenant = %(tenant)s AND w.tenant = %(tenant)s AND q.due_at IS NOT NULL
    AND (%(project)s::text IS NULL OR q.project = %(project)s)
GROUP BY w.name, w.kind, q.session, q.project, q.agent, q.store
HAVING max(q.due_at) <= %(now)s OR max(q.due_at) > %(latest)s OR (min(q.attempts) = 0 AND max(q.queued_at) < %(before)s)
ORDER BY min(q.number)
LIMIT %(limit)s

-- name: park
UPDATE waiting_turns
SET due_at = NULL, error = 'interrupted'
WHERE tenant = %(tenant)s AND owner = %(owner)s AND session = %(session)s
    AND project = %(project)s AND agent = %(agent)s AND store = %(store)s
    AND attempts >= %(most)s AND (due_at <= %(now)s OR due_at > %(latest)s)

-- name: claim
-- Materialized, because a subquery that the plan repeats would claim more rows each time.
WITH claimed AS MATERIALIZED (
    SELECT key FROM waiting_turns
    WHERE tenant = %(tenant)s AND owner = %(owner)s AND session = %(session)s
        AND project = %(project)s AND agent = %(agent)s AND store = %(store)s
        AND due_at IS NOT NULL AND (attempts = 0 OR due_at <= %(now)s OR due_at > %(latest)s)
    ORDER BY number
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
)
UPDATE waiting_turns AS q
SET attempts = q.attempts + 1, due_at = %(until)s
FROM claimed AS c
WHERE q.tenant = %(tenant)s AND q.owner = %(owner)s AND q.key = c.key
RETURNING q.key, q.turn, q.session, q.project, q.agent, q.store, q.content, q.queued_at, q.attempts, q.due_at,
    q.error, q.number

-- name: remove
DELETE FROM waiting_turns
WHERE tenant = %(tenant)s AND owner = %(owner)s AND key = %(key)s AND attempts = %(attempts)s

-- name: postpone
UPDATE waiting_turns SET due_at = %(due_at)s, error = %(error)s
WHERE tenant = %(tenant)s AND owner = %(owner)s AND key = %(key)s AND attempts = %(attempts)s

-- name: owners
SELECT DISTINCT w.owner, w.name, w.kind
FROM waiting_turns AS q
JOIN owners AS w ON w.tenant = q.tenant AND w.owner = q.owner
WHERE q.tenant = %(tenant)s AND w.tenant = %(tenant)s
ORDER BY w.owner

-- name: waiting
SELECT key, turn, session, project, agent, store, content, queued_at, attempts, due_at, error, number
FROM waiting_turns
WHERE tenant = %(tenant)s AND owner = %(owner)s AND (%(project)s::text IS NULL OR project = %(project)s)
ORDER BY number
LIMIT %(limit)s

-- name: retry
UPDATE waiting_turns
SET due_at = %(now)s, attempts = 0, error = ''
WHERE tenant = %(tenant)s AND owner = %(owner)s AND due_at IS NULL AND (%(key)s = '' OR key = %(key)s)
    AND (%(project)s::text IS NULL OR project = %(project)s)

-- name: drop
DELETE FROM waiting_turns WHERE tenant = %(tenant)s AND owner = %(owner)s AND key = %(key)s

-- name: erase
DELETE FROM waiting_turns
WHERE tenant = %(tenant)s AND owner = %(owner)s AND (NOT %(one_session)s OR session = %(session)s)
    AND (%(project)s::text IS NULL OR project = %(project)s)

-- name: spent
SELECT memories, calls, tokens FROM capture_days WHERE tenant = %(tenant)s AND owner = %(owner)s AND day = %(day)s

-- name: spend
INSERT INTO capture_days AS d (tenant, owner, day, memories, calls, tokens)
VALUES (%(tenant)s, %(owner)s, %(day)s, %(memories)s, %(calls)s, %(tokens)s)
ON CONFLICT (tenant, owner, day) DO UPDATE SET
    memories = d.memories + excluded.memories, calls = d.calls + excluded.calls, tokens = d.tokens + excluded.tokens
WHERE d.memories + excluded.memories <= %(most_memories)s
    AND d.calls + excluded.calls <= %(most_calls)s
    AND d.tokens + excluded.tokens <= %(most_tokens)s

-- name: captured
SELECT turn FROM captured_turns
WHERE tenant = %(tenant)s AND owner = %(owner)s AND turn = ANY(%(turns)s::text[])

-- name: mark_captured
INSERT INTO captured_turns (tenant, owner, turn)
SELECT %(tenant)s, %(owner)s, turn FROM unnest(%(turns)s::text[]) AS t (turn)
ON CONFLICT DO NOTHING

-- name: mark_forgotten
INSERT INTO forgotten_texts (tenant, owner, digest)
SELECT %(tenant)s, %(owner)s, digest FROM unnest(%(digests)s::bytea[]) AS t (digest)
ON CONFLICT DO NOTHING

-- name: forgotten
SELECT digest FROM forgotten_texts
WHERE tenant = %(tenant)s AND owner = %(owner)s AND digest = ANY(%(digests)s::bytea[])
