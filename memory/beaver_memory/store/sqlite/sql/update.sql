-- Changes of memories, and forgetting.

-- name: change_memory
-- `{settings}` are the columns that differ.
UPDATE observations SET {settings} WHERE tenant = ? AND id = ?

-- name: touch_memory
UPDATE observations
SET last_accessed_at = ?1, checksum = touched_sum(checksum, last_accessed_at, ?1)
WHERE tenant = ?2 AND id = ?3 AND deleted_at IS NULL

-- name: terms
SELECT terms, length FROM observations WHERE tenant = ? AND id = ?

-- name: add_history
INSERT INTO observation_history (tenant, memory, event, at, checksum, old, new) VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: empty_memory
UPDATE observations
SET version = ?, checksum = ?, deleted_at = ?, updated_at = ?, store = '', type = '', scope = '', project = '',
    session = '', agent = '', source = '', pinned = 0, expires_at = NULL, valid_from = NULL, valid_until = NULL,
    last_accessed_at = NULL, confidence = 0.0, importance = 0.0, mention_count = 1, token_count = 0, length = 0,
    hash = x'', speaker = '', origin = '', tags = '[]', keywords = '[]', related_files = '[]', related_people = '[]',
    terms = x'', title = '', summary = '', facts = '[]', narrative = '',
    evidence = '', superseded_by = NULL, doubted_by = NULL
WHERE tenant = ? AND id = ?

-- name: predecessors
-- The live memories that name forgotten ones as their successors.
SELECT id
FROM observations INDEXED BY observations_by_successor
WHERE tenant = ? AND superseded_by IN (SELECT value FROM json_each(?)) AND superseded_by IS NOT NULL
    AND deleted_at IS NULL
ORDER BY id

-- name: doubted
-- The live memories that forgotten ones doubt.
SELECT id
FROM observations INDEXED BY observations_by_doubt
WHERE tenant = ? AND doubted_by IN (SELECT value FROM json_each(?)) AND doubted_by IS NOT NULL
    AND deleted_at IS NULL
ORDER BY id

-- name: uid_in_index
-- The index gives the uid, whatever the row says.
SELECT uid FROM observations INDEXED BY observations_by_uid WHERE tenant = ? AND row = ?

-- name: resting_on
-- The live memories of an owner with an excerpt of one of some turns.
SELECT o.id
FROM observations AS o INDEXED BY observations_by_time
WHERE o.tenant = ? AND o.owner = ? AND o.deleted_at IS NULL AND o.origin IN (SELECT value FROM json_each(?))
    AND o.evidence != ''
ORDER BY o.id

-- name: empty_history
UPDATE observation_history
SET old = '{}', new = '{}', checksum = change_sum(memory, event, at, '{}', '{}')
WHERE tenant = ? AND memory = ?

-- name: renew_indexes
REINDEX observations

-- name: drop_labels_of_memory
DELETE FROM observation_labels WHERE tenant = ? AND owner = ? AND memory = ?

-- name: unqueue_memory
DELETE FROM unembedded WHERE tenant = ? AND owner = ? AND memory = ?

-- name: count_mentions_again
UPDATE people
SET mention_count = (
    SELECT count(*)
    FROM observation_labels AS l
    WHERE l.tenant = people.tenant AND l.owner = people.owner AND l.label = 'person:' || people.folded
)
WHERE tenant = ? AND owner = ?

-- name: drop_unmentioned_people
DELETE FROM people WHERE tenant = ? AND owner = ? AND mention_count = 0

-- name: footprint
-- The rows that hold content of memories, by place.
WITH wanted AS MATERIALIZED (SELECT value AS id FROM json_each(:ids))
SELECT 'memories', count(*)
FROM observations
WHERE tenant = :tenant AND id IN wanted AND (deleted_at IS NULL OR title != '' OR narrative != '' OR evidence != '')
UNION ALL
SELECT 'evidence', count(*) FROM observations WHERE tenant = :tenant AND id IN wanted AND evidence != ''
UNION ALL
SELECT 'vectors', count(*) FROM observation_embeddings WHERE tenant = :tenant AND memory IN wanted
UNION ALL
SELECT 'history', count(*)
FROM observation_history
WHERE tenant = :tenant AND memory IN wanted AND (old != '{}' OR new != '{}')
UNION ALL
SELECT 'labels', count(*) FROM observation_labels WHERE tenant = :tenant AND memory IN wanted
