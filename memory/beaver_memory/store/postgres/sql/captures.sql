-- What capture takes in a day, the turns from which memories were captured, and the marks of forgotten texts.

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
