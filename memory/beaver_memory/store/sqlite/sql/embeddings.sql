-- Embeddings by model, and the memories that have none yet.

-- name: find_model
SELECT id FROM models WHERE name = ?

-- name: add_model
INSERT INTO models (name) VALUES (?)

-- name: drop_model
DELETE FROM models WHERE id = ?

-- name: queue_everything
INSERT INTO unembedded SELECT tenant, owner, ?, created_at, id FROM observations WHERE deleted_at IS NULL

-- name: queue_again
INSERT OR IGNORE INTO unembedded (tenant, owner, model, created_at, memory) SELECT ?1, ?2, id, ?3, ?4 FROM models

-- name: unqueue
DELETE FROM unembedded WHERE tenant = ? AND owner = ? AND model = ? AND created_at = ? AND memory = ?

-- name: unqueue_memory
DELETE FROM unembedded
WHERE tenant = ? AND owner = ? AND model IN (SELECT id FROM models) AND created_at = ? AND memory = ?

-- name: unqueue_model
DELETE FROM unembedded WHERE model = ?

-- name: move_in_queue
UPDATE unembedded SET created_at = ?4
WHERE tenant = ?1 AND owner = ?2 AND model IN (SELECT id FROM models) AND created_at = ?3 AND memory = ?5

-- name: unembedded
SELECT {columns}
FROM unembedded AS u
CROSS JOIN observations AS o ON o.tenant = u.tenant AND o.id = u.memory
WHERE u.tenant = ?1 AND u.owner = ?2 AND u.model = ?3 AND (?4 IS NULL OR o.scope = 'global' OR o.project = ?4)
ORDER BY u.created_at DESC, u.memory DESC
LIMIT ?5

-- name: count_live_of_owner
SELECT live FROM owners WHERE tenant = ? AND number = ?

-- name: count_unembedded_of_owner
SELECT count(*) FROM unembedded WHERE tenant = ? AND owner = ? AND model = ?

-- name: count_unembedded_of_project
SELECT count(*)
FROM unembedded AS u
CROSS JOIN observations AS o ON o.tenant = u.tenant AND o.id = u.memory
WHERE u.tenant = ? AND u.owner = ? AND u.model = ? AND (o.scope = 'global' OR o.project = ?)

-- name: count_live_of_project
SELECT count(*)
FROM observations
WHERE tenant = ? AND owner = ? AND deleted_at IS NULL AND (scope = 'global' OR project = ?)

-- name: text_to_embed
SELECT created_at, CAST(title AS BLOB), CAST(narrative AS BLOB), CAST(facts AS BLOB)
FROM observations
WHERE tenant = ? AND owner = ? AND id = ? AND deleted_at IS NULL

-- name: add_vector
INSERT INTO observation_embeddings (tenant, owner, model, memory, version, checksum, data) VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: drop_vector
DELETE FROM observation_embeddings WHERE tenant = ? AND memory = ? AND model = ?

-- name: drop_vectors_of_memory
DELETE FROM observation_embeddings WHERE tenant = ? AND memory = ?

-- name: drop_vectors_of_model
DELETE FROM observation_embeddings WHERE model = ?

-- name: new_vectors
SELECT memory, version, data, checksum, (SELECT name FROM models WHERE id = model)
FROM observation_embeddings INDEXED BY observation_embeddings_by_version
WHERE tenant = ? AND owner = ? AND model = ? AND version > ?
ORDER BY version
LIMIT ?

-- name: vectors_of
SELECT memory, data, checksum
FROM observation_embeddings INDEXED BY observation_embeddings_by_memory
WHERE tenant = ?1 AND model = ?2 AND memory IN (SELECT value FROM json_each(?3))

-- name: last_vector
SELECT max(version)
FROM observation_embeddings INDEXED BY observation_embeddings_by_version
WHERE tenant = ? AND owner = ? AND model = ?

-- name: models_of_memory
SELECT model FROM observation_embeddings WHERE tenant = ? AND memory = ? ORDER BY version

-- name: set_vector_version
UPDATE observation_embeddings SET version = ? WHERE tenant = ? AND memory = ? AND model = ?
