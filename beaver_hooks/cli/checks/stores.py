"""Examination of the servers that hold memories, as the configuration names them; nothing connects to them."""

from collections.abc import Iterator, Mapping
from typing import Any

from beaver_hooks.cli.checks.findings import Finding, ok, problem, warning
from beaver_hooks.config.environment import is_reference
from beaver_hooks.config.paths import printable, shown_variable
from beaver_toolkit.postgres_urls import parsed

IN_ENVIRONMENT = 'put it into an environment variable, and write {"env": "NAME"} in its place'


def examine(sections: Mapping[str, Mapping[str, Any]], environment: Mapping[str, str]) -> Iterator[Finding]:
    """Yield host, database and tenant of each memory on a server; never its user or its password.

    Args:
        sections: the raw settings of the memories, by plugin.
        environment: holds the addresses.
    """
    for name, section in sections.items():
        store = section.get("store")
        settings = store.get("postgres") if isinstance(store, Mapping) else None
        if section.get("enabled") is True and isinstance(settings, Mapping):
            yield from _postgres(f"memory.{name}.store", settings, section.get("project"), environment)


def _postgres(
    subject: str, settings: Mapping[str, Any], name: object, environment: Mapping[str, str]
) -> Iterator[Finding]:
    url = settings.get("url")
    text = environment.get(url["env"], "") if is_reference(url) else url
    if is_reference(url) and not text:
        shown = shown_variable(url["env"])
        variable = f"the environment variable {shown}" if shown else "its environment variable"
        yield problem(subject, f"{variable} is not set, so no memory can be read", f"set {shown or 'it'}")
        return
    address = parsed(text) if isinstance(text, str) else None
    if address is None:
        yield problem(subject, "its `url` is no address of a database", "write postgresql://user@host:5432/database")
        return
    project = f", project {name}" if name else ""
    yield ok(subject, printable(f"{address.place}, tenant {settings.get('tenant')}{project}"))
    if address.has_password and not is_reference(url):
        yield warning(f"{subject}.postgres.url", "the password is in the configuration file itself", IN_ENVIRONMENT)
