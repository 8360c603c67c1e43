-- The terms of memories, and the analyser that made them.

-- name: analyser
SELECT value FROM store_facts WHERE name = 'analyser'

-- name: set_analyser
UPDATE store_facts SET value = ? WHERE name = 'analyser'

-- name: following_memories
-- `{columns}` are those that `rows.memory_of` reads.
SELECT {columns}, o.row FROM observations AS o WHERE o.row > ? AND o.deleted_at IS NULL ORDER BY o.row LIMIT ?

-- name: set_terms
UPDATE observations SET terms = ?, length = ?, checksum = ? WHERE row = ?
