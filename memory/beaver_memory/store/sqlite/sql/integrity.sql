-- Figures of a store, and the rules that its tables keep. Most `wrong_…` count the rows that break a rule.

-- name: rows
-- `{columns}` are those that `rows.whole_memory` reads. The index gives the key, whatever the row says.
SELECT {columns}, o.tenant, o.id FROM observations AS o INDEXED BY observations_by_id WHERE o.tenant > 0

-- name: newest_rows
SELECT {columns}, o.tenant, o.id FROM observations AS o WHERE o.tenant > 0 ORDER BY o.row DESC LIMIT ?

-- name: newest_memories
SELECT {columns} FROM observations AS o WHERE o.tenant > 0 AND o.deleted_at IS NULL ORDER BY o.row DESC LIMIT ?

-- name: count_rows
SELECT count(*) FROM observations

-- name: embeddings
SELECT e.tenant, e.memory, m.name, e.data, e.checksum FROM observation_embeddings AS e JOIN models AS m ON m.id = e.model

-- name: changes
SELECT tenant, memory, CAST(event AS BLOB), at, CAST(old AS BLOB), CAST(new AS BLOB), checksum FROM observation_history

-- name: people
SELECT tenant, owner, CAST(folded AS BLOB), CAST(name AS BLOB), CAST(aliases AS BLOB), checksum FROM people

-- name: summaries
SELECT tenant, owner, CAST(agent AS BLOB), CAST(session AS BLOB), CAST(request AS BLOB), CAST(outcome AS BLOB),
    CAST(decisions AS BLOB), CAST(open_items AS BLOB), observation_count, created_at, checksum
FROM session_summaries

-- name: tenants
SELECT number, name FROM tenants

-- name: count_forgotten
SELECT count(*) FROM observations WHERE deleted_at IS NOT NULL

-- name: count_owners
SELECT count(*) FROM owners

-- name: count_by_store
SELECT store, count(*) FROM observations WHERE deleted_at IS NULL GROUP BY store

-- name: count_by_type
SELECT type, count(*) FROM observations WHERE deleted_at IS NULL GROUP BY type

-- name: count_by_model
SELECT m.name, count(e.version)
FROM models AS m
LEFT JOIN observation_embeddings AS e ON e.model = m.id
GROUP BY m.id

-- name: wrong_counts_of_owners
-- The owners, with how many memories were counted and how many are there.
SELECT tenant, number, live, there
FROM (
    SELECT w.tenant, w.number, w.live, (
        SELECT count(*) FROM observations AS o WHERE o.tenant = w.tenant AND o.owner = w.number AND o.deleted_at IS NULL
    ) AS there
    FROM owners AS w
)
WHERE live <> there

-- name: wrong_successors
SELECT count(*)
FROM observations AS o
LEFT JOIN observations AS s ON s.tenant = o.tenant AND s.id = o.superseded_by
WHERE o.superseded_by IS NOT NULL AND (s.id IS NULL OR s.deleted_at IS NOT NULL)

-- name: wrong_doubts
SELECT count(*)
FROM observations AS o
LEFT JOIN observations AS s ON s.tenant = o.tenant AND s.id = o.doubted_by
WHERE o.doubted_by IS NOT NULL AND (s.id IS NULL OR s.deleted_at IS NOT NULL)

-- name: wrong_ids
SELECT count(*) FROM observations AS o JOIN tenants AS t ON t.number = o.tenant WHERE o.id >= t.next_id

-- name: wrong_versions
SELECT count(*)
FROM observations AS o
JOIN owners AS w ON w.tenant = o.tenant AND w.number = o.owner
WHERE o.version > w.last_version

-- name: wrong_twins
SELECT count(*) FROM (SELECT 1 FROM observations GROUP BY tenant, owner, version HAVING count(*) > 1)

-- name: wrong_embeddings
SELECT count(*)
FROM observation_embeddings AS e
JOIN observations AS o ON o.tenant = e.tenant AND o.id = e.memory
WHERE o.deleted_at IS NOT NULL OR o.owner <> e.owner
    OR e.version > (SELECT w.last_version FROM owners AS w WHERE w.tenant = e.tenant AND w.number = o.owner)

-- name: wrong_labels
SELECT count(*)
FROM observation_labels AS l
LEFT JOIN observations AS o ON o.tenant = l.tenant AND o.id = l.memory
WHERE o.id IS NULL OR o.deleted_at IS NOT NULL OR o.owner <> l.owner OR o.created_at <> l.created_at

-- name: wrong_queue
SELECT count(*)
FROM models AS m
CROSS JOIN observations AS o
WHERE o.deleted_at IS NULL AND (
    SELECT count(*)
    FROM unembedded AS u
    WHERE u.tenant = o.tenant AND u.owner = o.owner AND u.model = m.id AND u.created_at = o.created_at
        AND u.memory = o.id
) + (
    SELECT count(*) FROM observation_embeddings AS e WHERE e.tenant = o.tenant AND e.memory = o.id AND e.model = m.id
) <> 1

-- name: wrong_word_index
SELECT count(*) FROM indexed_words WHERE last > (SELECT coalesce(max(row), 0) FROM observations)

-- name: wrong_counts_of_people
SELECT (
    SELECT count(*)
    FROM people AS p
    WHERE mention_count <> (
        SELECT count(*)
        FROM observation_labels AS l
        WHERE l.tenant = p.tenant AND l.owner = p.owner AND l.label = 'person:' || p.folded
    )
) + (
    SELECT count(DISTINCT l.label)
    FROM observation_labels AS l
    LEFT JOIN people AS p ON p.tenant = l.tenant AND p.owner = l.owner AND p.folded = substr(l.label, 8)
    WHERE l.label >= 'person:' AND l.label < 'person;' AND p.folded IS NULL
)
