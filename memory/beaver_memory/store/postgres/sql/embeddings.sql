-- Embeddings by model, and the memories that have none yet.

-- name: find_model
SELECT model FROM models WHERE name = %(name)s

-- name: add_model
INSERT INTO models (model, name)
SELECT coalesce(max(model), 0) + 1, %(name)s FROM models
ON CONFLICT DO NOTHING

-- name: unembedded
SELECT o.id, t.title, t.narrative, t.facts
FROM observations AS o
JOIN texts AS t ON t.tenant = %(tenant)s AND t.id = o.id
WHERE o.tenant = %(tenant)s AND o.owner = %(owner)s AND o.deleted_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM embeddings AS e WHERE e.tenant = %(tenant)s AND e.memory = o.id AND e.model = %(model)s
) AND (%(project)s::text IS NULL OR o.scope = 'global' OR o.project = %(project)s)
ORDER BY o.created_at DESC, o.id DESC
LIMIT %(limit)s

-- name: count_unembedded_of_owner
SELECT o.live - coalesce(e.vectors, 0)
FROM owners AS o
LEFT JOIN embedded AS e ON e.tenant = %(tenant)s AND e.owner = o.owner AND e.model = %(model)s
WHERE o.tenant = %(tenant)s AND o.owner = %(owner)s

-- name: count_unembedded_of_project
SELECT count(*)
FROM observations AS o
WHERE o.tenant = %(tenant)s AND o.owner = %(owner)s AND o.deleted_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM embeddings AS e WHERE e.tenant = %(tenant)s AND e.memory = o.id AND e.model = %(model)s
) AND (o.scope = 'global' OR o.project = %(project)s)

-- name: texts_to_embed
SELECT o.id, t.title, t.narrative, t.facts
FROM observations AS o
JOIN texts AS t ON t.tenant = %(tenant)s AND t.id = o.id
WHERE o.tenant = %(tenant)s AND o.owner = %(owner)s AND o.id = ANY(%(ids)s::bigint[]) AND o.deleted_at IS NULL

-- name: embedded_memories
SELECT memory FROM embeddings
WHERE tenant = %(tenant)s AND memory = ANY(%(ids)s::bigint[]) AND model = %(model)s

-- name: set_vector
INSERT INTO embeddings (tenant, memory, model, owner, version, checksum, data, raw)
VALUES (%(tenant)s, %(id)s, %(model)s, %(owner)s, %(version)s, %(checksum)s, %(data)s::halfvec, %(raw)s::bytea)
ON CONFLICT (tenant, memory, model) DO UPDATE SET
    version = excluded.version, checksum = excluded.checksum, data = excluded.data, raw = excluded.raw

-- name: count_vectors
INSERT INTO embedded (tenant, owner, model, vectors)
VALUES (%(tenant)s, %(owner)s, %(model)s, %(count)s)
ON CONFLICT (tenant, owner, model) DO UPDATE SET vectors = embedded.vectors + excluded.vectors

-- name: new_vectors
SELECT memory, version, checksum, data, raw
FROM embeddings
WHERE tenant = %(tenant)s AND owner = %(owner)s AND model = %(model)s AND version > %(after)s
ORDER BY version
LIMIT %(limit)s

-- name: vectors_of
SELECT memory, version, checksum, data, raw
FROM embeddings
WHERE tenant = %(tenant)s AND memory = ANY(%(ids)s::bigint[]) AND model = %(model)s

-- name: lock_counts
-- Of the whole store: no write counts an embedding that the deletion does not see.
LOCK TABLE embedded IN SHARE ROW EXCLUSIVE MODE

-- name: uncount_model
-- Of the whole store.
DELETE FROM embedded WHERE model = %(model)s

-- name: drop_vectors_of_model
-- Of the whole store.
DELETE FROM embeddings WHERE model = %(model)s

-- name: drop_vectors_of_memories
WITH gone AS (
    DELETE FROM embeddings
    WHERE tenant = %(tenant)s AND memory = ANY(%(ids)s::bigint[]) AND owner = %(owner)s
    RETURNING model
)
SELECT model, count(*) FROM gone GROUP BY model

-- name: models_of_memory
SELECT model FROM embeddings WHERE tenant = %(tenant)s AND memory = %(id)s ORDER BY model

-- name: set_vector_version
UPDATE embeddings SET version = %(version)s
WHERE tenant = %(tenant)s AND memory = %(id)s AND model = %(model)s
