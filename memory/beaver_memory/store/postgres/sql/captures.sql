-- What capture takes in a day, and the turns from which memories were captured.

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
