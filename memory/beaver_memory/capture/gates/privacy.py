"""The privacy gate: places that memory must not learn from, and texts that it must not hold. Pure."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

import attrs
from attrs import field

from beaver_hostspecs import holds_secret
from beaver_memory.capture.gates.verdict import Occasion, Verdict
from beaver_memory.capture.records import Candidate
from beaver_memory.capture.sentences import holds_private


def _texts(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(values)


@attrs.frozen(kw_only=True)
class PrivacyGate:
    """Refuses what comes from a listed path, tag or project, and private or secret text.

    Attributes:
        paths: patterns of paths, for example `*/clients/*`; a folder stands for all that is in it.
        tags: labels, for example `health`.
        projects: patterns of projects.
    """

    paths: tuple[str, ...] = field(default=(), converter=_texts)
    tags: tuple[str, ...] = field(default=(), converter=_texts)
    projects: tuple[str, ...] = field(default=(), converter=_texts)

    def __call__(self, candidate: Candidate, occasion: Occasion) -> Verdict | None:
        """Return the objection to a candidate, or `None`."""
        checks = (
            ("secret", any(map(holds_secret, (candidate.text, *candidate.keywords)))),
            ("private_span", holds_private(candidate.text)),
            ("denied_project", any(fnmatchcase(occasion.project, each) for each in self.projects)),
            ("denied_tag", not {*map(str.casefold, self.tags)}.isdisjoint(map(str.casefold, occasion.tags))),
            ("denied_path", any(_within(path, each) for path in occasion.paths for each in self.paths)),
        )
        reason = next((name for name, holds in checks if holds), None)
        return None if reason is None else Verdict(gate="privacy", reason=reason)


def _within(path: str, pattern: str) -> bool:
    return fnmatchcase(path, pattern) or path.startswith(pattern.rstrip("/") + "/")
