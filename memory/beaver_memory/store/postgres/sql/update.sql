-- Changes of memories, and forgetting.

-- name: change_memory
-- `{settings}` are the columns that differ.
UPDATE observations SET {settings} WHERE tenant = %(tenant)s AND id = %(which)s

-- name: change_texts
UPDATE texts SET {settings} WHERE tenant = %(tenant)s AND id = %(which)s

-- name: touch_memories
-- The rows are locked in order of ids, and the checksum follows as `checksums.access_part` says.
UPDATE observations AS o
SET last_accessed_at = %(now)s,
    checksum = o.checksum
        # CASE WHEN o.last_accessed_at IS NULL THEN 0 ELSE 2 * o.last_accessed_at + 1 END
        # (2 * %(now)s::bigint + 1)
FROM (
    SELECT id
    FROM observations
    WHERE tenant = %(tenant)s AND id = ANY(%(ids)s::bigint[]) AND deleted_at IS NULL
    ORDER BY id
    FOR NO KEY UPDATE
) AS w
WHERE o.tenant = %(tenant)s AND o.id = w.id

-- name: add_history
INSERT INTO history (tenant, memory, version, at, checksum, event, old, new)
VALUES (%(tenant)s, %(id)s, %(version)s, %(at)s, %(checksum)s, %(event)s, %(old)s, %(new)s)

-- name: empty_memory
UPDATE observations
SET version = %(version)s, checksum = %(checksum)s, deleted_at = %(now)s, updated_at = %(now)s, store = '', type = '',
    scope = '', project = '', session = '', agent = '', source = '', speaker = '', origin = '', pinned = 0,
    expires_at = NULL, valid_from = NULL, valid_until = NULL, last_accessed_at = NULL, confidence = 0, importance = 0,
    mention_count = 1, token_count = 0, length = 0, hash = '', tags = '[]', related_files = '[]',
    related_people = '[]', labels = '{}', terms = '', words = '{}', superseded_by = NULL, doubted_by = NULL
WHERE tenant = %(tenant)s AND id = %(id)s

-- name: doubted
-- The live memories that forgotten ones doubt.
SELECT id
FROM observations
WHERE tenant = %(tenant)s AND doubted_by = ANY(%(ids)s::bigint[]) AND deleted_at IS NULL
ORDER BY id

-- name: predecessors
-- The live memories that name forgotten ones as their successors.
SELECT id
FROM observations
WHERE tenant = %(tenant)s AND superseded_by = ANY(%(ids)s::bigint[]) AND deleted_at IS NULL
ORDER BY id

-- name: resting_on
-- The live memories of owners with an excerpt of one of some turns.
SELECT o.id
FROM observations AS o
JOIN texts AS t ON t.tenant = %(tenant)s AND t.id = o.id
WHERE o.tenant = %(tenant)s AND o.owner = ANY(%(owners)s::integer[]) AND o.deleted_at IS NULL
    AND o.origin = ANY(%(turns)s::text[]) AND t.evidence != ''
ORDER BY o.id

-- name: drop_texts
DELETE FROM texts WHERE tenant = %(tenant)s AND id = ANY(%(ids)s::bigint[])

-- name: drop_history
DELETE FROM history WHERE tenant = %(tenant)s AND memory = ANY(%(ids)s::bigint[])

-- name: footprint
-- The rows that hold content of memories, by place.
SELECT
    (
        SELECT count(*) FROM observations
        WHERE tenant = %(tenant)s AND id = ANY(%(ids)s::bigint[]) AND deleted_at IS NULL
    ),
    (SELECT count(*) FROM texts WHERE tenant = %(tenant)s AND id = ANY(%(ids)s::bigint[]) AND evidence != ''),
    (SELECT count(*) FROM embeddings WHERE tenant = %(tenant)s AND memory = ANY(%(ids)s::bigint[])),
    (
        SELECT count(*) FROM history
        WHERE tenant = %(tenant)s AND memory = ANY(%(ids)s::bigint[]) AND (old != '{}' OR new != '{}')
    ),
    (
        SELECT coalesce(sum(cardinality(labels)), 0) FROM observations
        WHERE tenant = %(tenant)s AND id = ANY(%(ids)s::bigint[])
    )
