-- The statements of the host's database: the chained trail, receipts, health.

-- name: head
SELECT seq, mac FROM audit ORDER BY seq DESC LIMIT 1

-- name: add_record
INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: records
-- Reads bytes, because another program may have written values that are no text. Verification names the record.
SELECT seq, CAST(mac AS BLOB), CAST(at AS BLOB), CAST(name AS BLOB), CAST(plugin AS BLOB), CAST(hook AS BLOB),
       CAST(turn AS BLOB), CAST(session AS BLOB), CAST(facts AS BLOB)
FROM audit
ORDER BY seq

-- name: last_records
SELECT seq, CAST(mac AS BLOB), CAST(at AS BLOB), CAST(name AS BLOB), CAST(plugin AS BLOB), CAST(hook AS BLOB),
       CAST(turn AS BLOB), CAST(session AS BLOB), CAST(facts AS BLOB)
FROM audit
ORDER BY seq DESC
LIMIT ?

-- name: records_named
SELECT seq, CAST(mac AS BLOB), CAST(at AS BLOB), CAST(name AS BLOB), CAST(plugin AS BLOB), CAST(hook AS BLOB),
       CAST(turn AS BLOB), CAST(session AS BLOB), CAST(facts AS BLOB)
FROM audit
WHERE name = ? AND at > ?
ORDER BY seq

-- name: put_receipt
INSERT INTO receipts (turn, at, body, checksum) VALUES (?, ?, ?, ?)
ON CONFLICT (turn) DO UPDATE SET at = excluded.at, body = excluded.body, checksum = excluded.checksum

-- name: drop_old_receipts
DELETE FROM receipts
WHERE rowid IN (SELECT rowid FROM receipts ORDER BY at DESC, rowid DESC LIMIT -1 OFFSET ?)

-- name: receipts
-- Reads bytes here and below, because a damaged text may be none.
SELECT CAST(turn AS BLOB), CAST(at AS BLOB), CAST(body AS BLOB), checksum
FROM receipts
ORDER BY at DESC, rowid DESC
LIMIT ?

-- name: receipt
SELECT CAST(turn AS BLOB), CAST(at AS BLOB), CAST(body AS BLOB), checksum FROM receipts WHERE turn = ?

-- name: put_health
-- Keeps a suspension that another host has changed later, because this host may not have read it.
INSERT INTO health VALUES (?, ?, ?) ON CONFLICT (plugin) DO UPDATE SET
    body = CASE
        WHEN json_valid(health.body) AND json_extract(health.body, '$.suspension.moved')
            BETWEEN coalesce(json_extract(excluded.body, '$.suspension.moved'), '') AND excluded.updated
        THEN json_set(excluded.body, '$.suspension', json_extract(health.body, '$.suspension'))
        ELSE excluded.body
    END,
    updated = excluded.updated

-- name: health
SELECT plugin, body FROM health ORDER BY plugin

-- name: triggers
SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'audit'
