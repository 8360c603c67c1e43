-- The candidates of a search in a large owner. `{conditions}` are the filters, built by `sql_filters.py`.
--
-- `o.owner + 0` keeps PostgreSQL from the indexes by owner, which would read all of the owner's rows: words are salted
-- with the owner, so the index by words alone finds few others. A forgotten memory has no words. LATERAL with OFFSET
-- looks up each id by the key, whatever PostgreSQL believes of a table that it has no statistics of.

-- name: visible_figures
SELECT coalesce(max(w.live), 0), count(*), coalesce(sum(o.length), 0)
FROM owners AS w
JOIN observations AS o ON o.tenant = %(tenant)s AND o.owner = w.owner AND {conditions}
WHERE w.tenant = %(tenant)s AND w.owner = %(owner)s

-- name: figures
-- Of an owner from whom the filters hide only what does not hold now: few memories have such limits.
SELECT w.live, w.live - h.memories, w.terms_length - h.length
FROM owners AS w
CROSS JOIN (
    SELECT count(*) AS memories, coalesce(sum(o.length), 0) AS length
    FROM observations AS o
    WHERE o.tenant = %(tenant)s AND o.owner = %(owner)s AND o.deleted_at IS NULL
        AND (o.expires_at IS NOT NULL OR o.valid_from IS NOT NULL OR o.valid_until IS NOT NULL) AND NOT ({conditions})
) AS h
WHERE w.tenant = %(tenant)s AND w.owner = %(owner)s

-- name: frequencies
SELECT {each}

-- name: frequency
(
    SELECT count(*)
    FROM observations AS o
    WHERE o.tenant = %(tenant)s AND o.owner + 0 = %(owner)s AND o.words @> %({word})s::bigint[] AND {conditions}
)

-- name: best_by_words
-- `{score}` adds up the `weight` of each word that a memory has; a long memory has words by chance.
SELECT s.id
FROM (
    SELECT o.id, ({score}) / (0.25 + 0.75 * o.length / %(mean)s::float8 + 1 / 1.2) AS score
    FROM observations AS o
    WHERE o.tenant = %(tenant)s AND o.owner + 0 = %(owner)s AND o.words && %(rare)s::bigint[] AND {conditions}
) AS s
ORDER BY s.score DESC, s.id DESC
LIMIT %(limit)s

-- name: weight
CASE WHEN o.words @> %({word})s::bigint[] THEN %({weight})s::float8 ELSE 0 END

-- name: nearest
-- OFFSET keeps any index of vectors out: with a filter it would silently return too few. The embedding of a long memory
-- holds a vector for each passage.
SELECT s.memory
FROM (
    SELECT e.memory, CASE
        WHEN vector_dims(e.data) = %(dimensions)s THEN e.data <#> %(vector)s::halfvec
        ELSE (
            SELECT min(subvector(e.data, (1 + p * %(dimensions)s)::integer, %(dimensions)s::integer) <#> %(vector)s::halfvec)
            FROM generate_series(0, vector_dims(e.data) / %(dimensions)s - 1) AS p
        )
    END AS distance
    FROM embeddings AS e
    WHERE e.tenant = %(tenant)s AND e.owner = %(owner)s AND e.model = %(model)s
    OFFSET 0
) AS s
{visible}
ORDER BY s.distance
LIMIT %(limit)s

-- name: visible
JOIN observations AS o ON o.tenant = %(tenant)s AND o.id = s.memory AND {conditions}

-- name: links
-- The memories before and after others in their sessions, if they are near in time: so no index by session is needed.
SELECT c.id, {earlier}, {later}
FROM unnest(%(ids)s::bigint[]) AS w (id)
CROSS JOIN LATERAL (SELECT * FROM observations AS r WHERE r.tenant = %(tenant)s AND r.id = w.id OFFSET 0) AS c
WHERE c.session <> ''

-- name: link
(
    SELECT n.id
    FROM (
        SELECT o.id, o.session, o.created_at
        FROM observations AS o
        WHERE o.tenant = %(tenant)s AND o.owner = %(owner)s AND (o.created_at, o.id) {side} (c.created_at, c.id)
            AND {conditions}
        ORDER BY o.created_at {order}, o.id {order}
        LIMIT %(window)s
    ) AS n
    WHERE n.session = c.session
    ORDER BY n.created_at {order}, n.id {order}
    LIMIT 1
)

-- name: rows
-- `rows.index_row_of` reads the columns, in this order.
SELECT
    o.id, o.version, o.deleted_at, o.terms, o.length, o.store, o.type, o.scope, o.project, o.session, o.agent,
    o.source, o.speaker, o.tags, o.related_files, o.related_people, o.created_at, o.updated_at, o.expires_at,
    o.valid_from, o.valid_until, o.mention_count, o.importance, o.confidence, o.pinned, o.uid,
    o.doubted_by
FROM unnest(%(ids)s::bigint[]) AS w (id)
CROSS JOIN LATERAL (SELECT * FROM observations AS r WHERE r.tenant = %(tenant)s AND r.id = w.id OFFSET 0) AS o
WHERE o.owner = %(owner)s AND {conditions}

-- name: vectors
SELECT e.memory, e.version, e.checksum, e.data, e.raw
FROM unnest(%(ids)s::bigint[]) AS w (id)
CROSS JOIN LATERAL (
    SELECT *
    FROM embeddings AS r
    WHERE r.tenant = %(tenant)s AND r.memory = w.id AND r.model = %(model)s
    OFFSET 0
) AS e
WHERE e.owner = %(owner)s
