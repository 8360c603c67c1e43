r"""Every error that embedding raises.

    BeaverError
    └── EmbeddingError           a text could not be embedded, or a model is not available
        ├── EmbedderUnavailable      it may pass by itself: `unavailable`, `timeout`
        ├── EmbedderRefused          it will not pass by itself: `refused`
        ├── EmbeddingUnusable        an answer that is no embedding: `wrong_dimension`, `not_finite`, `malformed`
        └── EmbedderMissing          something is not there: `missing_model`, `missing_package`, `missing_key`

Each names the provider and a remedy. None holds a text to embed, a credential, or an answer of a provider.
"""

from types import MappingProxyType
from typing import Literal

from beaver_hostspecs import BeaverError

Category = Literal[
    "unavailable",
    "timeout",
    "refused",
    "wrong_dimension",
    "not_finite",
    "malformed",
    "missing_model",
    "missing_package",
    "missing_key",
]


class EmbeddingError(BeaverError):
    """The root of this tree; never raised itself.

    Attributes:
        provider: the provider.
        category: the kind of failure, in one word.
        status: the HTTP status, if any.
        variable: the name of the variable that is not set, if any.
    """

    variable: str | None = None

    def __init__(
        self, provider: str, category: Category, problem: str, remedy: str, *, status: int | None = None
    ) -> None:
        self.provider = provider
        self.category = category
        self.status = status
        super().__init__(f"{problem}. {remedy}")


class EmbedderUnavailable(EmbeddingError):
    """The provider cannot be reached, is overloaded or takes too long."""


class EmbedderRefused(EmbeddingError):
    """The provider refuses a request, or a download is not the expected one."""


class EmbeddingUnusable(EmbeddingError):
    """The answer of the provider is no embedding."""


class EmbedderMissing(EmbeddingError):
    """A model or a package is missing or incomplete, or a credential is not set."""


_KINDS: MappingProxyType[str, type[EmbeddingError]] = MappingProxyType(
    {
        "unavailable": EmbedderUnavailable,
        "timeout": EmbedderUnavailable,
        "refused": EmbedderRefused,
        "wrong_dimension": EmbeddingUnusable,
        "not_finite": EmbeddingUnusable,
        "malformed": EmbeddingUnusable,
        "missing_model": EmbedderMissing,
        "missing_package": EmbedderMissing,
        "missing_key": EmbedderMissing,
    }
)


def failure(
    provider: str, category: Category, problem: str, remedy: str, *, status: int | None = None
) -> EmbeddingError:
    """Return the error of the right class.

    Args:
        provider: the provider.
        category: the kind of failure.
        problem: the failure as a sentence without its full stop.
        remedy: the advice to the user, as a whole sentence.
        status: the HTTP status, if any.
    """
    return _KINDS[category](provider, category, problem, remedy, status=status)
