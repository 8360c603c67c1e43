-- People, and summaries of sessions. Texts are read as bytes: one that is not UTF-8 fails no statement.

-- name: mentions
-- The people whom an owner's memories mention: how many memories, and how many that the reader may see. Not verified.
SELECT substr(CAST(l.label AS BLOB), 8), count(*), count(*) FILTER (WHERE o.owner = l.owner AND {conditions}) -- after `person:`
FROM observation_labels AS l
CROSS JOIN observations AS o ON o.tenant = l.tenant AND o.id = l.memory
WHERE l.tenant = ? AND l.owner = ? AND l.label >= ? AND l.label < ?
GROUP BY l.label

-- name: memories_of_people
-- The memories of an owner with one of some labels, and whether the reader may see them. `{columns}` are those that
-- `rows.whole_memory` reads.
SELECT {columns}, o.owner = ? AND {conditions}
FROM observations AS o
WHERE o.tenant = ? AND o.id IN (
    SELECT l.memory
    FROM observation_labels AS l
    WHERE l.tenant = ? AND l.owner = ? AND l.label IN (SELECT value FROM json_each(?))
)
ORDER BY o.id

-- name: people_of_owner
SELECT CAST(folded AS BLOB), CAST(name AS BLOB), CAST(aliases AS BLOB), mention_count, checksum
FROM people
WHERE tenant = ? AND owner = ?

-- name: summaries
-- The index gives the order and the key: a row whose own key is damaged is not found by it.
SELECT CAST(k.agent AS BLOB), CAST(k.session AS BLOB), CAST(s.request AS BLOB), CAST(s.outcome AS BLOB),
    CAST(s.decisions AS BLOB), CAST(s.open_items AS BLOB), s.observation_count, s.created_at, s.checksum
FROM session_summaries AS k INDEXED BY session_summaries_by_time
LEFT JOIN session_summaries AS s
    ON s.tenant = k.tenant AND s.owner = k.owner AND s.agent = k.agent AND s.session = k.session
WHERE k.tenant = ? AND k.owner = ?
ORDER BY k.created_at DESC, k.agent, k.session

-- name: set_summary
INSERT OR REPLACE INTO session_summaries (
    tenant, owner, agent, session, request, outcome, decisions, open_items, observation_count, created_at, checksum
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: drop_summaries
DELETE FROM session_summaries
WHERE tenant = ?1 AND owner = ?2 AND (?3 IS NULL OR session IN (SELECT value FROM json_each(?3)))
