-- People, and summaries of sessions.

-- name: people
-- The count covers visible memories only: a reader who may see none of a person's memories does not see the name.
SELECT p.label, (array_agg(o.related_people ORDER BY o.id))[1], count(*), max(o.created_at)
FROM observations AS o
CROSS JOIN unnest(o.labels) AS p (label)
WHERE o.tenant = %(tenant)s AND o.owner = ANY(%(owners)s::integer[]) AND starts_with(p.label, %(prefix)s)
    AND {conditions}
GROUP BY o.owner, p.label

-- name: summaries
SELECT agent, session, request, outcome, decisions, open_items, observation_count, created_at
FROM session_summaries
WHERE tenant = %(tenant)s AND owner = %(owner)s
ORDER BY created_at DESC, agent, session
LIMIT %(limit)s

-- name: set_summary
INSERT INTO session_summaries (
    tenant, owner, agent, session, request, outcome, decisions, open_items, observation_count, created_at
)
VALUES (
    %(tenant)s, %(owner)s, %(agent)s, %(session)s, %(request)s, %(outcome)s, %(decisions)s, %(open_items)s, %(count)s,
    %(created_at)s
)
ON CONFLICT (tenant, owner, agent, session) DO UPDATE SET
    request = excluded.request, outcome = excluded.outcome, decisions = excluded.decisions,
    open_items = excluded.open_items, observation_count = excluded.observation_count, created_at = excluded.created_at
