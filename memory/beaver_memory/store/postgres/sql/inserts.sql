-- New rows, one at a time or many at once. The names are those of tables and columns of `rows.py`.

-- name: taken_uids
SELECT uid FROM observations WHERE tenant = %(tenant)s AND uid = ANY(%(uids)s::bytea[])

-- name: insert_row
INSERT INTO {table} ({columns}) VALUES ({marks})

-- name: copy_rows
COPY {table} ({columns}) FROM STDIN (FORMAT BINARY)
