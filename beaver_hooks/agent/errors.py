r"""The errors of the agent.

    BeaverError
    └── AgentError
        ├── ProviderError            the model did not answer; names a category, never a credential
        ├── SessionError             something about one session
        │   └── UnknownSession       no session of that id (also a LookupError)
        ├── StorageError             sessions cannot be read or written
        │   └── AnswerNotStored      there is an answer, in `text`, and the session does not have it
        └── SkillError               a skill cannot be found or read

Errors of plugins, tools and the configuration are in the tree of the contract.
"""

from beaver_hostspecs import BeaverError


class AgentError(BeaverError):
    """The root of this tree; never raised itself."""


class ProviderError(AgentError):
    """The model did not answer.

    Attributes:
        category: `refused`, `unauthorised`, `not_found`, `rate_limited`, `server_error`, `http_error`, `timeout`,
            `connection`, `malformed`, `too_large`, `truncated` or `empty`.
        status: the HTTP status, or `None`.
    """

    def __init__(self, message: str, *, category: str, status: int | None = None) -> None:
        self.category = category
        self.status = status
        super().__init__(message)


class SessionError(AgentError):
    """Something about one session."""


class UnknownSession(SessionError, LookupError):
    """No session of that id is stored."""


class StorageError(AgentError):
    """Sessions cannot be read or written."""


class AnswerNotStored(StorageError):
    """The model answered, and the session could not be written: the turn was dropped.

    Attributes:
        text: the answer, so that it is not lost.
    """

    def __init__(self, message: str, *, text: str) -> None:
        self.text = text
        super().__init__(message)


class SkillError(AgentError):
    """A skill cannot be found or read."""
