"""Credentials from an environment variable, which the configuration names: `{"env": "NAME"}`."""

import re
from collections.abc import Mapping
from typing import TypeGuard

from beaver_hooks.config.json_checks import text_problem
from beaver_hooks.config.paths import shown_variable

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_reference(value: object) -> TypeGuard[Mapping[str, str]]:
    """Whether `value` is `{"env": "NAME"}` and nothing else."""
    return (
        isinstance(value, Mapping)
        and set(value) == {"env"}
        and isinstance(value["env"], str)
        and _NAME.fullmatch(value["env"]) is not None
    )


def lookup(reference: Mapping[str, str], environment: Mapping[str, str]) -> tuple[str | None, str]:
    """Return the variable's text and an empty problem, or `None` and the problem."""
    name = reference["env"]
    # A credential in the place of the name does not look like the name of a variable, so it is not repeated.
    variable = f"the environment variable `{name}`" if shown_variable(name) else "its environment variable"
    text = environment.get(name)
    if not text:
        return None, f"is missing: {variable} is not set"
    problem = text_problem(text)
    return (None, f"{variable} {problem}") if problem else (text, "")
