"""The settings in the section `memory.local.store` of the configuration."""

import attrs

from beaver_hostspecs import Secret
from beaver_hostspecs.settings import Check, Unfit, between, setting
from beaver_toolkit.postgres_urls import parsed

LONGEST_NAME = 100

_whole = Check(
    wanted="must be a whole number", fits=lambda value: isinstance(value, int) and not isinstance(value, bool)
)
_url = Check(
    wanted="must be an address like postgresql://user@host:5432/database, with a host and a database; write `@`, `/`"
    " and `?` in a password as %40, %2F and %3F",
    fits=lambda value: parsed(value.reveal()) is not None,
)
project_name = Check(
    wanted=f"must be a name of 1 to {LONGEST_NAME} characters without `/`, control characters and spaces around it",
    fits=lambda value: (
        0 < len(value) <= LONGEST_NAME and value == value.strip() and value.isprintable() and "/" not in value
    ),
)
_schema = Check(
    wanted="must be a name of small letters, digits and `_`, at most 63",
    fits=lambda value: value.isidentifier() and value.isascii() and value.islower() and len(value) <= 63,  # noqa: PLR2004
)


@attrs.frozen(kw_only=True)
class PostgresSettings:
    """A PostgreSQL database that holds the memories; camelCase in the file."""

    url: Secret = setting(
        help='the address, `postgresql://user:password@host:5432/database`; a secret: {"env": "NAME"}', validator=_url
    )
    tenant: str = setting(help="the tenant whose memories are used; other tenants stay hidden", validator=project_name)
    schema: str = setting(default="beaver_memory", help="the schema of the tables", validator=_schema)
    connections: int = setting(
        default=4, help="the most connections of one process", validator=[_whole, between(1, 64)]
    )
    connect_seconds: int = setting(
        default=3, help="the most seconds that a connection may take to be made", validator=[_whole, between(1, 60)]
    )
    allow_unencrypted: bool = setting(
        default=False, help="whether a server on another machine may be reached without TLS, where others can read"
    )

    def __attrs_post_init__(self) -> None:
        """Refuse to send memories over a network unencrypted, unless a setting allows it."""
        address = parsed(self.url.reveal())
        if address is not None and address.is_exposed and not self.allow_unencrypted:
            raise Unfit(
                "`url` leads to another machine without TLS, so others can read memories and the password on the way;"
                " add `?sslmode=verify-full`, or set `allowUnencrypted` to true"
            )


@attrs.frozen(kw_only=True)
class StoreSettings:
    """Where memories are kept: in files of SQLite unless another store is given."""

    postgres: PostgresSettings | None = setting(
        default=None, help="a PostgreSQL database that holds all memories, in place of files"
    )
