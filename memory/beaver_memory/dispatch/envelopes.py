"""The envelopes of a request and of its response, the same for every transport."""

from collections.abc import Mapping
from typing import Any, Literal

import attrs
from attrs import field
from attrs.validators import and_, instance_of, max_len, optional

from beaver_memory.filters import Filters
from beaver_memory.records import Owner, Store
from beaver_memory.runtime.table import Caller

LONGEST_KEY = 200

_key: Any = and_(instance_of(str), max_len(LONGEST_KEY))

Status = Literal["done", "refused", "invalid", "failed"]
"""How an operation ended: `refused` by its rules, `invalid` before it began, `failed` by a fault."""


@attrs.frozen(kw_only=True)
class Source:
    """Where a request comes from. A transport builds it from the identity that it has verified.

    Attributes:
        caller: who calls.
        visible: the memories that the caller may see; a request only narrows it.
        own: the memories that the caller may change.
        owner: the owner of the memories that the caller writes.
        store: their visibility, unless the request names another one that the caller may change.
        every_owner: whether the caller may name other owners, as the owner of the store may.
        name: of the transport, for the trace.
    """

    caller: Caller
    visible: Filters
    own: Filters
    owner: Owner = field(factory=Owner)
    store: Store = Store.PRIVATE
    every_owner: bool = False
    name: str = "sdk"


@attrs.frozen(kw_only=True)
class RequestEnvelope:
    """A request by name.

    Attributes:
        operation: the name of the operation.
        request: the fields of its request.
        source: where it comes from.
        profile: the profile that the caller expects, or `None` for any.
        idempotency_key: a key of the caller's; a second request with it is answered with the first response.
    """

    operation: str = field(validator=instance_of(str))
    request: Mapping[str, Any] = field(factory=dict, repr=False)
    source: Source
    profile: str | None = None
    idempotency_key: str | None = field(default=None, validator=optional(_key))


@attrs.frozen(kw_only=True)
class Problem:
    """One thing that is wrong with a request. It never repeats a value.

    Attributes:
        code: the kind of problem, in one word for programs.
        sentence: the problem and the remedy.
        field: the path of the field, for example `memories[0].title`; empty for the request as a whole.
    """

    code: str
    sentence: str
    field: str = ""


@attrs.frozen(kw_only=True)
class ResponseEnvelope:
    """A response.

    Attributes:
        operation: the name of the operation.
        status: how it ended.
        report: the fields of its report; empty unless it is done or refused.
        problems: why it is refused, invalid or failed.
        profile: the profile of the memory.
        idempotency_key: of the request.
        replayed: whether this is the response to an earlier request with the same key.
    """

    operation: str
    status: Status
    report: Mapping[str, Any] = field(factory=dict, repr=False)
    problems: tuple[Problem, ...] = ()
    profile: str
    idempotency_key: str | None = None
    replayed: bool = False
