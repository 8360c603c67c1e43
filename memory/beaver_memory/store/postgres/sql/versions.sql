-- Versions, and the changes that an index has not seen yet.

-- name: take_versions
UPDATE owners
SET counter = counter + %(count)s, last_version = counter + %(count)s, live = live + %(live)s,
    terms_length = terms_length + %(length)s
WHERE tenant = %(tenant)s AND owner = %(owner)s
RETURNING counter

-- name: take_vector_versions
UPDATE owners SET counter = counter + %(count)s
WHERE tenant = %(tenant)s AND owner = %(owner)s
RETURNING counter

-- name: lock_owners
SELECT owner FROM owners
WHERE tenant = %(tenant)s AND owner = ANY(%(owners)s::integer[])
ORDER BY owner
FOR NO KEY UPDATE

-- name: last_version
SELECT last_version FROM owners WHERE tenant = %(tenant)s AND owner = %(owner)s

-- name: versions
SELECT o.owner, o.last_version, coalesce((
    SELECT max(e.version)
    FROM embeddings AS e
    WHERE e.tenant = %(tenant)s AND e.owner = o.owner AND e.model = %(model)s
), 0)
FROM owners AS o
WHERE o.tenant = %(tenant)s AND o.owner = ANY(%(owners)s::integer[])

-- name: changed_memories
-- `rows.index_row_of` reads the columns, in this order.
SELECT
    o.id, o.version, o.deleted_at, o.terms, o.length, o.store, o.type, o.scope, o.project, o.session, o.agent,
    o.source, o.speaker, o.tags, o.related_files, o.related_people, o.created_at, o.updated_at, o.expires_at,
    o.valid_from, o.valid_until, o.mention_count, o.importance, o.confidence, o.pinned, o.uid,
    o.doubted_by
FROM observations AS o
WHERE o.tenant = %(tenant)s AND o.owner = %(owner)s AND o.version > %(after)s
ORDER BY o.version
LIMIT %(limit)s

-- name: ids_by_version
SELECT id
FROM observations
WHERE tenant = %(tenant)s AND owner = %(owner)s AND deleted_at IS NULL
    AND (%(all)s OR scope = ANY(%(scopes)s::text[]))
ORDER BY version
