-- The random name of a store, made once.

-- name: identity
SELECT value FROM store_facts WHERE name = 'identity'

-- name: new_identity
UPDATE store_facts SET value = lower(hex(randomblob(16))) WHERE name = 'identity'

-- name: applied_now
UPDATE schema_version SET applied_at = ?
