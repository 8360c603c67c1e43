"""The records by which a plugin exports and erases the data of one person."""

from collections.abc import Callable, Mapping
from pathlib import Path

import attrs
from attrs import field
from attrs.validators import optional

from beaver_hostspecs.freezing import freeze, texts


def _named(_: object, attribute: "attrs.Attribute[str]", value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{attribute.name} must be an id that is not blank")


@attrs.frozen(kw_only=True)
class Subject:
    """The person whose data is meant.

    Attributes:
        user: the id by which turns name the user. It is never empty: data without a user is of no one person.
        tenant: the tenant of the user, `None` for data that names no tenant. The same id in another tenant is another
            person.
    """

    user: str = field(validator=_named, repr=False)
    tenant: str | None = field(default=None, validator=optional(_named), repr=False)


@attrs.frozen(kw_only=True)
class SubjectReport:
    """What an export or an erasure found of a person.

    Attributes:
        places: how many things were found, exported or erased, by the plural noun of their place, for example
            `{"memories": 12}`.
        left: how many were not erased or not read, by place; the command fails if there is one.
        unreached: the places that were not reached and the data that stays, one sentence each.
    """

    places: Mapping[str, int] = field(factory=dict, converter=freeze)
    left: Mapping[str, int] = field(factory=dict, converter=freeze)
    unreached: tuple[str, ...] = field(default=(), converter=texts)


@attrs.frozen(kw_only=True)
class SubjectData:
    """Exports and erases the data of a person that a configured plugin keeps; the plugin need not be started.

    Each function may wait for a disk or a network, is called from a thread, and may run while other processes use the
    state. It takes no other person's data: neither that of another user nor that of the same id in another tenant. A
    `PluginError` is shown to the user as it is, so it names the remedy.

    Attributes:
        count: reports what an erasure would erase, and changes nothing.
        export: writes the data into an empty folder, as files that a person can read, and reports what it wrote.
        erase: erases the data, and reports the erased and the remaining data.
    """

    count: Callable[[Subject], SubjectReport] = field(repr=False)
    export: Callable[[Subject, Path], SubjectReport] = field(repr=False)
    erase: Callable[[Subject], SubjectReport] = field(repr=False)
