"""SQLite files: opening and preparing them, transactions, migrations, readers, errors. Needs the extra `sqlite`.

apsw is imported when the first database is opened: `errors`, `connections`, `database` and `migrations` import nothing
of it before.
"""
