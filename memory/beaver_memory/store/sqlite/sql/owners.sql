-- Tenants and owners, and their numbers.

-- name: find_tenant
SELECT number FROM tenants WHERE name = ?

-- name: add_tenant
INSERT INTO tenants (name) VALUES (?) ON CONFLICT DO NOTHING

-- name: find_owner
SELECT w.tenant, w.number FROM tenants AS t JOIN owners AS w ON w.tenant = t.number WHERE t.name = ? AND w.user = ?

-- name: add_owner
INSERT INTO owners (tenant, number, user)
SELECT number, (SELECT coalesce(max(number), 0) + 1 FROM owners), ?2 FROM tenants WHERE name = ?1
RETURNING tenant, number

-- name: owners
SELECT w.number, t.name, w.user FROM owners AS w JOIN tenants AS t ON t.number = w.tenant

-- name: live_owners
SELECT t.name, w.user FROM owners AS w JOIN tenants AS t ON t.number = w.tenant WHERE w.live > 0 ORDER BY w.number

-- name: live
SELECT live FROM owners WHERE tenant = ? AND number = ?
