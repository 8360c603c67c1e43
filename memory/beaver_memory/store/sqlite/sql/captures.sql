-- What capture takes in a day, the turns from which memories were captured, and the marks of forgotten texts.

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
