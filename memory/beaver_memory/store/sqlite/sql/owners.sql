-- Owners and their numbers.

-- name: find_owner
SELECT id FROM owners WHERE tenant = ? AND user = ?

-- name: add_owner
INSERT INTO owners (tenant, user) VALUES (?, ?)

-- name: owners
SELECT id, tenant, user FROM owners

-- name: live_owners
SELECT tenant, user FROM owners WHERE live > 0 ORDER BY id

-- name: live
SELECT live FROM owners WHERE id = ?
