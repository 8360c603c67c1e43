"""Options of several commands, and their parameter types."""

from typing import Any

import click

from beaver_hostspecs import Trust


class Identifier(click.ParamType[str]):
    """The id of a user or a session. A blank one is refused: it would count as missing."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the id unchanged."""
        if not str(value).strip():
            self.fail("An id must not be blank; leave the option out if there is none.", param, ctx)
        return str(value)


IDENTIFIER = Identifier()


trust_option = click.option(
    "--trust",
    type=click.Choice([each.value for each in Trust]),
    help="How far memory trusts the user, if less than `agent.trust`.",
)
no_memory_option = click.option(
    "--no-memory", is_flag=True, help="Switch memory off for the session, until it is switched on again."
)
