-- The statements of the database of sessions. Their cost depends on the returned rows, not on the length of a session.

-- name: session_ids
SELECT id FROM sessions ORDER BY number

-- name: session_ids_of_user
SELECT id FROM sessions WHERE user = ? ORDER BY number

-- name: holdings
SELECT 'conversations', count(*) FROM sessions WHERE user = :user
UNION ALL
SELECT 'messages', count(*) FROM messages WHERE session IN (SELECT number FROM sessions WHERE user = :user)
UNION ALL
SELECT 'hidden events', count(*) FROM events WHERE session IN (SELECT number FROM sessions WHERE user = :user)

-- name: find_session
SELECT number, user FROM sessions WHERE id = ?

-- name: session_number
SELECT number FROM sessions WHERE id = ?

-- name: begun_with
SELECT trust, user FROM sessions WHERE number = ?

-- name: add_session
INSERT INTO sessions (id, user, created, updated, trust) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING

-- name: session_info
SELECT id, user, coalesce(title, opening, x''), created, updated, messages, events
FROM sessions
WHERE number = ?

-- name: session_infos
SELECT id, user, coalesce(title, opening, x''), created, updated, messages, events
FROM sessions
WHERE messages > 0
ORDER BY updated DESC, number DESC
LIMIT ?

-- name: session_infos_of_user
SELECT id, user, coalesce(title, opening, x''), created, updated, messages, events
FROM sessions
WHERE messages > 0 AND user = ?
ORDER BY updated DESC, number DESC
LIMIT ?

-- name: touch
UPDATE sessions SET updated = ? WHERE number = ?

-- name: set_title
UPDATE sessions SET title = ? WHERE number = ?

-- name: messages
-- Texts come as bytes here and below: one that is not UTF-8 fails no statement.
SELECT number, checksum, session, CAST(role AS BLOB), text, CAST(at AS BLOB), id, speaker
FROM messages
WHERE session = ?
ORDER BY number DESC
LIMIT ?

-- name: count_rows
SELECT count(*) FROM messages WHERE session = ?

-- name: count_everything
SELECT 'sessions', count(*) FROM sessions
UNION ALL
SELECT 'messages', count(*) FROM messages

-- name: all_messages
SELECT messages.number, checksum, CAST(sessions.id AS BLOB), session, CAST(role AS BLOB), text, CAST(at AS BLOB),
    messages.id, speaker
FROM messages
LEFT JOIN sessions ON sessions.number = messages.session
ORDER BY messages.number

-- name: miscounted_sessions
SELECT CAST(id AS BLOB), messages, there
FROM (SELECT id, messages, (SELECT count(*) FROM messages AS m WHERE m.session = sessions.number) AS there FROM sessions)
WHERE there <> messages

-- name: add_message
INSERT INTO messages (session, role, text, at, id, speaker, checksum) VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: add_words
INSERT INTO words (rowid, terms, scope) VALUES (?, ?, ?)

-- name: count_messages
UPDATE sessions SET messages = messages + ?, opening = coalesce(opening, ?) WHERE number = ?

-- name: events
SELECT name, at, payload FROM events WHERE session = ? ORDER BY number DESC LIMIT ?

-- name: add_event
INSERT INTO events (session, at, name, payload) VALUES (?, ?, ?, ?)

-- name: count_events
UPDATE sessions SET events = events + ? WHERE number = ?

-- name: delete_words
DELETE FROM words WHERE rowid IN (SELECT number FROM messages WHERE session = ?)

-- name: delete_messages
DELETE FROM messages WHERE session = ?

-- name: delete_events
DELETE FROM events WHERE session = ?

-- name: delete_session
DELETE FROM sessions WHERE number = ?

-- name: optimise_words
INSERT INTO words (words) VALUES ('optimize')

-- name: count_matches
SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)

-- name: find_messages
SELECT number, score
FROM (
    SELECT rowid AS number, bm25(words, 1.0, 0.0) AS score FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?
)
ORDER BY score, number DESC
LIMIT ?

-- name: matching_messages
SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid

-- name: text_of_message
SELECT CAST(text AS BLOB) FROM messages WHERE number = ?

-- name: quoting_sessions
SELECT DISTINCT messages.session
FROM words JOIN messages ON messages.number = words.rowid
WHERE words MATCH ?

-- name: messages_of_turn
SELECT messages.session, messages.number
FROM messages JOIN messages AS found ON found.session = messages.session
WHERE
    found.number = :number
    AND messages.number >= coalesce(
        (SELECT max(number) FROM messages WHERE session = found.session AND role = 'user' AND number <= found.number),
        found.number
    )
    AND messages.number < coalesce(
        (SELECT min(number) FROM messages WHERE session = found.session AND role = 'user' AND number > found.number),
        messages.number + 1
    )

-- name: delete_words_of_message
DELETE FROM words WHERE rowid = ?

-- name: delete_message
DELETE FROM messages WHERE number = ?

-- name: recount_messages
UPDATE sessions
SET messages = (SELECT count(*) FROM messages WHERE session = :session), opening = NULL
WHERE number = :session

-- name: rest_of_session
SELECT messages, title FROM sessions WHERE number = ?

-- name: found_message
SELECT sessions.id, sessions.number, sessions.user, messages.checksum, messages.session, CAST(messages.role AS BLOB),
    messages.text, CAST(messages.at AS BLOB), messages.id, messages.speaker
FROM messages JOIN sessions ON sessions.number = messages.session
WHERE messages.number = ?
