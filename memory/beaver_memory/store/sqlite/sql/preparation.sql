-- The random name of a store, made once.

-- name: identity
SELECT value FROM store_facts WHERE name = 'identity'
