-- Figures of a store, and the rules that its tables keep. Each `wrong_…` counts the rows that break a rule.

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
SELECT count(*)
FROM owners AS w
WHERE live <> (SELECT count(*) FROM observations AS o WHERE o.owner = w.id AND o.deleted_at IS NULL)

-- name: wrong_versions
SELECT count(*) FROM observations WHERE version > (SELECT value FROM counter)

-- name: wrong_twins
SELECT count(*) FROM (SELECT version FROM observations GROUP BY version HAVING count(*) > 1)

-- name: wrong_embeddings
SELECT count(*)
FROM observation_embeddings AS e
JOIN observations AS o ON o.id = e.memory
WHERE o.deleted_at IS NOT NULL OR o.owner <> e.owner OR e.version > (SELECT value FROM counter)

-- name: wrong_labels
SELECT count(*)
FROM observation_labels AS l
LEFT JOIN observations AS o ON o.id = l.memory
WHERE o.id IS NULL OR o.deleted_at IS NOT NULL OR o.owner <> l.owner OR o.created_at <> l.created_at

-- name: wrong_queue
SELECT count(*)
FROM models AS m
CROSS JOIN observations AS o
WHERE o.deleted_at IS NULL AND (
    SELECT count(*)
    FROM unembedded AS u
    WHERE u.model = m.id AND u.owner = o.owner AND u.created_at = o.created_at AND u.memory = o.id
) + (
    SELECT count(*) FROM observation_embeddings AS e WHERE e.model = m.id AND e.memory = o.id
) <> 1

-- name: wrong_word_index
SELECT count(*) FROM indexed_words WHERE last > (SELECT coalesce(max(id), 0) FROM observations)

-- name: wrong_counts_of_people
SELECT count(*)
FROM people AS p
WHERE mention_count <> (
    SELECT count(*) FROM observation_labels AS l WHERE l.owner = p.owner AND l.label = 'person:' || p.folded
)
