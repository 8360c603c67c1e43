-- Embeddings by model, and the memories that have none yet.

-- name: find_model
SELECT id FROM models WHERE name = ?

-- name: add_model
INSERT INTO models (name) VALUES (?)

-- name: drop_model
DELETE FROM models WHERE id = ?

-- name: queue_everything
INSERT INTO unembedded SELECT ?, owner, created_at, id FROM observations WHERE deleted_at IS NULL

-- name: queue_again
INSERT OR IGNORE INTO unembedded SELECT id, ?, ?, ? FROM models

-- name: unqueue
DELETE FROM unembedded WHERE model = ? AND owner = ? AND created_at = ? AND memory = ?

-- name: unqueue_memory
DELETE FROM unembedded
WHERE model IN (SELECT id FROM models) AND owner = ? AND created_at = ? AND memory = ?

-- name: unqueue_model
DELETE FROM unembedded WHERE model = ?

-- name: move_in_queue
UPDATE unembedded SET created_at = ?
WHERE model IN (SELECT id FROM models) AND owner = ? AND created_at = ? AND memory = ?

-- name: unembedded
SELECT o.id, o.title, o.narrative, o.facts
FROM unembedded AS u
CROSS JOIN observations AS o ON o.id = u.memory
WHERE u.model = ? AND u.owner = ?
ORDER BY u.created_at DESC, u.memory DESC
LIMIT ?

-- name: count_live
SELECT coalesce(sum(live), 0) FROM owners WHERE ?1 IS NULL OR id = ?1

-- name: count_unembedded
SELECT count(*) FROM unembedded WHERE model = ?

-- name: count_unembedded_of_owner
SELECT count(*) FROM unembedded WHERE model = ? AND owner = ?

-- name: text_to_embed
SELECT created_at, title, narrative, facts FROM observations WHERE id = ? AND owner = ? AND deleted_at IS NULL

-- name: add_vector
INSERT INTO observation_embeddings (version, memory, model, owner, data) VALUES (?, ?, ?, ?, ?)

-- name: drop_vector
DELETE FROM observation_embeddings WHERE memory = ? AND model = ?

-- name: drop_vectors_of_memory
DELETE FROM observation_embeddings WHERE memory = ?

-- name: drop_vectors_of_model
DELETE FROM observation_embeddings WHERE model = ?

-- name: new_vectors
SELECT memory, version, data
FROM observation_embeddings INDEXED BY observation_embeddings_by_owner
WHERE model = ? AND owner = ? AND version > ?
ORDER BY version
LIMIT ?

-- name: last_vector
SELECT version
FROM observation_embeddings INDEXED BY observation_embeddings_by_owner
WHERE model = ? AND owner = ?
ORDER BY version DESC
LIMIT 1

-- name: vector_versions
SELECT version FROM observation_embeddings WHERE memory = ?

-- name: set_vector_version
UPDATE observation_embeddings SET version = ? WHERE version = ?
