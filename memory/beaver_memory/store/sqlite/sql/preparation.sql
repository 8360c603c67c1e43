-- The random name of a store, made once.

-- name: identity
SELECT value FROM store_facts WHERE name = 'identity'

-- name: count_rows
SELECT (SELECT count(*) FROM observations) + (SELECT count(*) FROM observation_embeddings)
