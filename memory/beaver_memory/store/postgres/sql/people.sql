-- People, and summaries of sessions.

-- name: people
-- The count covers visible memories only: a reader who may see none of a person's memories does not see the name.
-- `{columns}` are those that `rows.memories_of` reads.
SELECT {columns}
FROM observations AS o
JOIN texts AS t ON t.tenant = %(tenant)s AND t.id = o.id
WHERE o.tenant = %(tenant)s AND o.owner = ANY(%(owners)s::integer[]) AND o.related_people <> '[]' AND {conditions}
ORDER BY o.id

-- name: summaries
SELECT agent, session, request, outcome, decisions, open_items, observation_count, created_at, checksum
FROM session_summaries
WHERE tenant = %(tenant)s AND owner = %(owner)s
ORDER BY created_at DESC, agent, session

-- name: set_summary
INSERT INTO session_summaries (
    tenant, owner, agent, session, request, outcome, decisions, open_items, observation_count, created_at,
    checksum
)
VALUES (
    %(tenant)s, %(owner)s, %(agent)s, %(session)s, %(request)s, %(outcome)s, %(decisions)s, %(open_items)s, %(count)s,
    %(created_at)s, %(checksum)s
)
ON CONFLICT (tenant, owner, agent, session) DO UPDATE SET
    request = excluded.request, outcome = excluded.outcome, decisions = excluded.decisions,
    open_items = excluded.open_items, observation_count = excluded.observation_count, created_at = excluded.created_at,
    checksum = excluded.checksum

-- name: drop_summaries
DELETE FROM session_summaries
WHERE tenant = %(tenant)s AND owner = %(owner)s
    AND (%(sessions)s::text[] IS NULL OR session = ANY(%(sessions)s::text[]))
