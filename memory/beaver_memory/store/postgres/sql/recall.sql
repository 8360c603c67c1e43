-- The statement of each search with an index.

-- name: recalled
-- The versions of each owner as in `versions.sql`, and beside them its memories as in `reads.sql`, or NULL.
SELECT
    v.owner, v.last_version, coalesce((
        SELECT max(e.version)
        FROM embeddings AS e
        WHERE e.tenant = %(tenant)s AND e.owner = v.owner AND e.model = %(model)s
    ), 0),
    m.*
FROM owners AS v
LEFT JOIN (
    SELECT {columns}
    FROM unnest(%(ids)s::bigint[]) AS w (id)
    CROSS JOIN LATERAL (SELECT * FROM observations AS r WHERE r.tenant = %(tenant)s AND r.id = w.id OFFSET 0) AS o
    JOIN texts AS t ON t.tenant = %(tenant)s AND t.id = o.id
    WHERE {conditions}
) AS m ON m.owner = v.owner
WHERE v.tenant = %(tenant)s AND v.owner = ANY(%(owners)s::integer[])
