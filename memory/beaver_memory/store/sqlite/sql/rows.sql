-- Parts of statements that read rows of memories as `observations AS o`.

-- name: fails
-- `{columns}` are those of the checksum.
found_sum(
    (SELECT t.name FROM tenants AS t WHERE t.number = o.tenant),
    (SELECT w.user FROM owners AS w WHERE w.tenant = o.tenant AND w.number = o.owner),
    (SELECT w.kind FROM owners AS w WHERE w.tenant = o.tenant AND w.number = o.owner),
    {columns}
) IS NOT o.checksum
