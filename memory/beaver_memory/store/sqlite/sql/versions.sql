-- Versions, and the changes that an index has not seen yet.

-- name: take_versions
UPDATE owners SET last_version = last_version + ?1, live = live + ?2
WHERE tenant = ?3 AND number = ?4
RETURNING last_version - ?1 + 1

-- name: last_version
SELECT max(version) FROM observations INDEXED BY observations_by_version WHERE tenant = ? AND owner = ?

-- name: last_versions
-- Of the memories of an owner, and of their embeddings by a model.
SELECT
    (SELECT max(version) FROM observations INDEXED BY observations_by_version WHERE tenant = ?1 AND owner = ?2),
    (
        SELECT max(version) FROM observation_embeddings INDEXED BY observation_embeddings_by_version
        WHERE tenant = ?1 AND owner = ?2 AND model = (SELECT id FROM models WHERE name = ?3)
    )

-- name: changed_memories
-- `{columns}` are those that `rows.index_row` reads; the version comes from the index.
SELECT {columns}, o.version
FROM observations AS o INDEXED BY observations_by_version
WHERE o.tenant = ? AND o.owner = ? AND o.version > ?
ORDER BY o.version
LIMIT ?

-- name: ids_by_version
-- With whether a row is damaged: such a row comes whatever its columns say.
SELECT o.id, {fails}
FROM observations AS o INDEXED BY observations_by_version
WHERE o.tenant = ?1 AND o.owner = ?2
    AND ((o.deleted_at IS NULL AND (?3 = '[]' OR o.scope IN (SELECT value FROM json_each(?3)))) OR {fails})
ORDER BY o.version

-- name: count_live_rows
SELECT count(*)
FROM observations AS o INDEXED BY observations_by_version
WHERE o.tenant = ? AND o.owner = ? AND o.deleted_at IS NULL

-- name: count_live_rows_by_time
SELECT count(*)
FROM observations AS o INDEXED BY observations_by_time
WHERE o.tenant = ? AND o.owner = ? AND o.deleted_at IS NULL
