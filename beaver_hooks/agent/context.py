"""Builds the provider's messages, in the order of the design. Pure.

1. The system prompt: base, rules of the plugins, their trusted blocks. Left out if it is empty.
2. Skill activations, role `user`: chosen by the user.
3. Reference messages, role `user`: recalled, untrusted, fenced by the host.
4. The session's history: messages of the user and the assistant. Messages of other roles and empty ones are left out,
   so that no imported session speaks as the system, and no provider refuses the request for one empty message.
5. The user's prompt.

Every text passes `presentable`. No text is cut: a prompt of 1 MB is sent unchanged, and the provider decides whether it
is too long. A prompt of only whitespace and NUL is refused.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Protocol

from beaver_hooks.agent.messages import ChatMessage
from beaver_hooks.agent.skills import ActiveSkill, activation_text
from beaver_hooks.text import presentable
from beaver_hostspecs import InvalidTurn, Role

SHOWN: tuple[Role, ...] = ("user", "assistant")


class HistoryMessage(Protocol):
    """A message of the history: the contract's `Message`, for example."""

    @property
    def role(self) -> Role:
        """The speaker's role."""

    @property
    def text(self) -> str:
        """The text of the message."""


class Recalled(Protocol):
    """A rendered reference message: the host's `ReferenceMessage`, for example."""

    @property
    def text(self) -> str:
        """The whole message."""


class ContextBuilder:
    """Puts the messages together."""

    @staticmethod
    def build_messages(
        *,
        system_prompt: str = "",
        skills: Iterable[ActiveSkill] = (),
        references: Iterable[Recalled] = (),
        history: Iterable[HistoryMessage] = (),
        prompt: str,
        merge: bool = False,
    ) -> tuple[ChatMessage, ...]:
        """Return the messages for the provider; the same arguments give the same messages.

        Args:
            system_prompt: base, rules and blocks, as `OpenTurn.system_prompt` gives them.
            skills: the active skills.
            references: one message per plugin that recalled something.
            history: the session's messages before this prompt, oldest first.
            prompt: the user's prompt.
            merge: join adjacent messages of one role, for a provider that refuses them.

        Raises:
            InvalidTurn: the prompt is blank.
        """
        messages = [
            *_texts("system", [system_prompt]),
            *_texts("user", map(activation_text, skills)),
            *_texts("user", (each.text for each in references)),
            *(message for each in history if each.role in SHOWN for message in _texts(each.role, [each.text])),
            ChatMessage(role="user", text=checked_prompt(prompt)),
        ]
        return tuple(_merged(messages) if merge else messages)


def checked_prompt(prompt: str) -> str:
    """Return a prompt in a form that a provider may get.

    Raises:
        InvalidTurn: it is no text, or contains only whitespace and NUL.
    """
    if not isinstance(prompt, str):
        raise InvalidTurn("the prompt must be a str")
    if not prompt.replace("\0", "").strip():
        raise InvalidTurn("the prompt is empty; write one")
    return presentable(prompt)


def _texts(role: Role, texts: Iterable[str]) -> Iterator[ChatMessage]:
    return (ChatMessage(role=role, text=presentable(text)) for text in texts if text.strip())


def _merged(messages: Iterable[ChatMessage]) -> Iterator[ChatMessage]:
    for role, group in groupby(messages, key=lambda message: message.role):
        yield ChatMessage(role=role, text="\n\n".join(message.text for message in group))
