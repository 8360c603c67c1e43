"""Reads the addresses of PostgreSQL databases: the part that may be shown, and whether others can read on the way."""

import ipaddress
import re
from urllib.parse import parse_qsl, unquote, urlsplit

import attrs
from attrs import field

LONGEST = 2048
_SCHEMES = frozenset({"postgresql", "postgres"})
_ENCRYPTED = frozenset({"require", "verify-ca", "verify-full"})
"""Values of `sslmode` under which libpq never sends anything unencrypted."""

_SERVER = re.compile(r"(?:\[[^\]]*\]|[^:\[\]]*)(?::\d*)?")
"""A server: a name or an address, and a port."""


@attrs.frozen(kw_only=True)
class PostgresUrl:
    """An address `postgresql://user:password@host:port/database?options`.

    Attributes:
        hosts: the servers, or folders of sockets, in the order in which they are tried.
        database: the name of the database.
        sslmode: how the connection is encrypted; empty if the address does not say it.
        has_password: whether a password is in the address.
    """

    hosts: tuple[str, ...]
    database: str
    sslmode: str = ""
    has_password: bool = field(default=False, repr=False)

    @property
    def place(self) -> str:
        """The servers and the database, without user and password."""
        return f"postgresql://{','.join(self.hosts)}/{self.database}"

    @property
    def is_exposed(self) -> bool:
        """Whether memories and the password can be read on a network."""
        return self.sslmode not in _ENCRYPTED and not all(map(_is_here, self.hosts))


def parsed(url: str) -> PostgresUrl | None:
    """Return an address; `None` for any other text, and for an address without a host or a database."""
    try:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        return None
    user, _, netloc = parts.netloc.rpartition("@")
    database = options.get("dbname") or unquote(parts.path.removeprefix("/"))
    hosts = _hosts(options, netloc)
    if parts.scheme not in _SCHEMES or not url.isprintable() or len(url) > LONGEST or not hosts or not database:
        return None
    if is_misread(url):
        return None
    return PostgresUrl(
        hosts=hosts,
        database=database,
        sslmode=options.get("sslmode", ""),
        has_password=":" in user or "password" in options,
    )


def is_misread(url: str) -> bool:
    """Return whether libpq would take a part of a password for a host, a port or a database.

    That happens to an `@`, `/` or `?` in the password that is not quoted. A text that is no address `postgresql://...`
    is not misread.
    """
    scheme, found, rest = url.partition("://")
    if not found or scheme.strip() not in _SCHEMES:
        return False
    place, _, path = rest.partition("?")[0].partition("/")
    servers = place.rpartition("@")[2].split(",")
    return place.count("@") > 1 or "@" in path or not all(map(_SERVER.fullmatch, servers))


def _hosts(options: dict[str, str], netloc: str) -> tuple[str, ...]:
    """Return the hosts with their ports; an address of its own, `hostaddr`, is where libpq connects to."""
    given = options.get("hostaddr") or options.get("host")
    found = given.split(",") if given else [unquote(each) for each in netloc.split(",")]
    port = options.get("port")
    named = [f"{each}:{port}" if port and not each.startswith("/") else each for each in found]
    return tuple(named) if all(found) else ()


def _is_here(host: str) -> bool:
    if host.startswith(("/", "@")):
        return True
    name = host[1:].partition("]")[0] if host.startswith("[") else host.rpartition(":")[0] or host
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name.removesuffix(".") == "localhost"
