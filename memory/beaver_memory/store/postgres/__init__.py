"""The store in a PostgreSQL database with pgvector, for any number of servers, with its migrations and its SQL."""

from beaver_memory.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
