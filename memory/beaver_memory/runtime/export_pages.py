"""The pages of an export: each memory once, even while other processes write."""

import base64
import json
import threading
from bisect import bisect_right

import attrs

from beaver_memory.engine import MemoryEngine
from beaver_memory.errors import InvalidRequest
from beaver_memory.records import Memory, Owner
from beaver_memory.runtime.reports import ExportReport
from beaver_memory.runtime.requests import ExportRequest


@attrs.frozen
class Place:
    """The last memory of a page: owners follow one another by name, the memories of an owner by id."""

    owner: Owner
    id: int

    @classmethod
    def of_cursor(cls, cursor: str) -> "Place":
        """Return the place that a cursor names.

        Raises:
            InvalidRequest: no page ends with this cursor.
        """
        try:
            tenant, user, kind, id_ = json.loads(base64.urlsafe_b64decode(cursor.encode("ascii")))
            return cls(Owner(tenant=tenant, user=user, kind=kind), int(id_))
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise InvalidRequest("cursor", "is not the `next_cursor` of a page") from error

    @property
    def cursor(self) -> str:
        """The place as a text."""
        parts = [*_name(self.owner), self.id]
        return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode("ascii")


class ExportPages:
    """Reads the pages. Thread-safe.

    Args:
        engine: of the memories.
    """

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._ids: tuple[Owner, list[int]] | None = None

    def page(self, request: ExportRequest) -> ExportReport:
        """Return a page."""
        last = Place.of_cursor(request.cursor) if request.cursor else None
        owners = self._owners(request, last)
        for owner in owners:
            after = last.id if last is not None and last.owner == owner else 0
            found, end = self._rows(request, owner, after)
            if found:
                more = end is not None or owner != owners[-1]
                place = Place(owner, found[-1].id if end is None else end)
                return ExportReport(memories=tuple(found), next_cursor=place.cursor if more else "", has_more=more)
        return ExportReport()

    def _owners(self, request: ExportRequest, last: Place | None) -> list[Owner]:
        """Return the owners whose memories follow: all owners by name, or those of the request in its order."""
        if request.every_owner:
            owners = sorted(self._engine.owners(), key=_name)
            return owners if last is None else [owner for owner in owners if _name(owner) >= _name(last.owner)]
        owners = list(request.visible.view.owners)
        if last is None:
            return owners
        if last.owner not in owners:
            raise InvalidRequest("cursor", "is of an export of other owners")
        return owners[owners.index(last.owner) :]

    def _rows(self, request: ExportRequest, owner: Owner, after: int) -> tuple[list[Memory], int | None]:
        """Return the next memories of an owner, and the id at which the page ends unless it is the owner's last."""
        visible = request.visible.within(owners=(owner,), owner=owner)
        ids = self._after(owner, after)
        for begin in range(0, len(ids), request.limit):
            some = ids[begin : begin + request.limit]
            if found := self._engine.get(some, visible):
                return found, some[-1] if begin + request.limit < len(ids) else None
        return [], None

    def _after(self, owner: Owner, after: int) -> list[int]:
        """Return the ids above one, in order; the list is kept from one page to the next."""
        with self._lock:
            if after == 0 or self._ids is None or self._ids[0] != owner:
                self._ids = (owner, sorted(self._engine.store.ids(owner)))
            ids = self._ids[1]
        return ids[bisect_right(ids, after) :]


def _name(owner: Owner) -> tuple[str, str, str]:
    return owner.tenant, owner.user, owner.kind
