-- What capture takes in a day, and the turns from which memories were captured.

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
