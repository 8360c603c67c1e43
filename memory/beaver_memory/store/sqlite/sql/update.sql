-- Changes of memories, and forgetting.

-- name: change_memory
-- `{settings}` are the columns that differ.
UPDATE observations SET {settings} WHERE id = ?

-- name: touch_memory
UPDATE observations SET last_accessed_at = ?
WHERE id = ? AND owner IN (SELECT id FROM owners WHERE tenant = ?) AND deleted_at IS NULL

-- name: terms
SELECT terms, length FROM observations WHERE id = ?

-- name: add_history
INSERT INTO observation_history (memory, event, at, old, new) VALUES (?, ?, ?, ?, ?)

-- name: empty_memory
UPDATE observations
SET version = ?, deleted_at = ?, updated_at = ?, store = '', type = '', scope = '', project = '', session = '',
    agent = '', source = '', pinned = 0, expires_at = NULL, valid_from = NULL, valid_until = NULL,
    last_accessed_at = NULL, confidence = 0.0, importance = 0.0, mention_count = 1, token_count = 0, length = 0,
    hash = x'', speaker = '', origin = '', tags = '[]', keywords = '[]', related_files = '[]', related_people = '[]',
    terms = x'', title = '', summary = '', facts = '[]', narrative = ''
WHERE id = ?

-- name: empty_history
UPDATE observation_history SET old = '{}', new = '{}' WHERE memory = ?

-- name: drop_archived
DELETE FROM observation_archive WHERE original_observation_id = ?

-- name: count_one_less
UPDATE owners SET live = live - 1 WHERE id = ?
