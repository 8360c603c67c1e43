"""Combines the contributions of all plugins into the model's context. Pure: equal contributions give equal bytes."""

from collections.abc import Iterable, Mapping, Sequence

import attrs

from beaver_hostspecs import Contribution, Hint, Reference
from beaver_hostspecs.rendering import RenderedReferences, render_references
from beaver_hostspecs.tokens import estimate_tokens

MOST_CHARACTERS = 1_000_000
"""A contribution with more text than this is refused whole, as it must be a mistake."""

MOST_ITEMS = 10_000
"""The same limit for the number of its blocks, references and hints."""

Answers = Sequence[tuple[str, Contribution]]
"""Each plugin's name with its contribution, in order."""


@attrs.frozen(kw_only=True)
class Block:
    """One trusted text for the system prompt, with the name of its plugin."""

    plugin: str
    text: str


@attrs.frozen(kw_only=True)
class ReferenceMessage:
    """The references of one plugin, rendered. Send it with role `user`, and keep it nowhere."""

    plugin: str
    text: str


@attrs.frozen(kw_only=True)
class PluginHint:
    """One hint, with the name of its plugin."""

    plugin: str
    hint: Hint


@attrs.frozen(kw_only=True)
class Recall:
    """The context that memory adds to a turn, ready for the provider.

    Attributes:
        rules: the constant rules of the registered plugins, for the system prompt.
        blocks: trusted texts for the system prompt, after the rules.
        references: one message per plugin that recalled something, in order.
        hints: experience with the host's own tools.
    """

    rules: tuple[Block, ...] = ()
    blocks: tuple[Block, ...] = ()
    references: tuple[ReferenceMessage, ...] = ()
    hints: tuple[PluginHint, ...] = ()

    def system_prompt(self, base: str = "") -> str:
        """Return the system prompt: `base`, the rules, the blocks."""
        return "\n\n".join(part for part in (base, *(each.text for each in (*self.rules, *self.blocks))) if part)


@attrs.frozen(kw_only=True)
class Share:
    """One plugin's part of the context, and how much of it was cut."""

    blocks: int = 0
    tokens: int = 0
    offered: int = 0
    rendered: RenderedReferences | None = None

    @property
    def injected(self) -> tuple[str | None, ...]:
        """The ids of the references that are shown."""
        return self.rendered.shown if self.rendered else ()


class UnrenderableError(Exception):
    """A contribution has the right types but cannot be rendered; names its plugin."""

    def __init__(self, plugin: str) -> None:
        self.plugin = plugin
        super().__init__(plugin)


def is_too_large(contribution: Contribution) -> bool:
    """Whether a contribution is larger than any text meant for a model."""
    parts = (contribution.blocks, contribution.references, contribution.hints)
    if sum(len(part) for part in parts) > MOST_ITEMS:
        return True
    characters = sum(map(len, contribution.blocks))
    characters += sum(map(_characters, contribution.references)) + sum(map(_characters, contribution.hints))
    return characters > MOST_CHARACTERS


def _characters(item: Reference | Hint) -> int:
    values = (getattr(item, field.name) for field in attrs.fields(type(item)))
    return sum(len(value) for value in values if isinstance(value, str | tuple))


def compose(
    answers: Answers, *, rules: Iterable[Block], boundary: str, limit: int, budget: int | None
) -> tuple[Recall, Mapping[str, Share]]:
    """Combine the contributions.

    Args:
        answers: the contribution of each plugin, in order.
        rules: the rules of the registered plugins.
        boundary: the turn's random boundary.
        limit: the tokens that one plugin's references may take.
        budget: the tokens that memory may take in all, or `None`.

    Returns:
        The context for the model, and each plugin's share of it.

    Raises:
        UnrenderableError: one contribution cannot be rendered; remove it and try again.
    """
    shares = _shares(answers, boundary=boundary, limit=limit, budget=budget)
    recall = Recall(
        rules=tuple(rules),
        blocks=tuple(Block(plugin=plugin, text=text) for plugin, answer in answers for text in answer.blocks),
        references=tuple(
            ReferenceMessage(plugin=plugin, text=share.rendered.text)
            for plugin, share in shares.items()
            if share.rendered
        ),
        hints=tuple(PluginHint(plugin=plugin, hint=hint) for plugin, answer in answers for hint in answer.hints),
    )
    return recall, shares


def _shares(answers: Answers, *, boundary: str, limit: int, budget: int | None) -> dict[str, Share]:
    """Return each plugin's share; blocks are never cut, so they are paid for first."""
    tokens = {plugin: sum(map(estimate_tokens, answer.blocks)) for plugin, answer in answers}
    left = None if budget is None else budget - sum(tokens.values())
    waiting = sum(1 for _, answer in answers if answer.references)
    shares = {}
    for plugin, answer in answers:
        rendered = None
        if answer.references:
            # An equal share of the rest; a plugin's unused tokens go to the plugins after it.
            most = limit if left is None else min(limit, max(0, left) // waiting)
            waiting -= 1
            rendered = _render(plugin, answer.references, boundary, most)
        spent = rendered.tokens if rendered else 0
        left = None if left is None else left - spent
        shares[plugin] = Share(
            blocks=len(answer.blocks),
            tokens=tokens[plugin] + spent,
            offered=sum(1 for reference in answer.references if reference.text.strip()),
            rendered=rendered,
        )
    return shares


def _render(plugin: str, references: Sequence[Reference], boundary: str, budget: int) -> RenderedReferences | None:
    try:
        return render_references(plugin, references, boundary=boundary, budget=budget)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # reading a value of a plugin's own type may raise anything
        raise UnrenderableError(plugin) from error
