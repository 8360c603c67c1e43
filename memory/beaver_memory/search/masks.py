"""Masks of the visible units of a block: filters, time and forgetting, with the same results as the store's filters."""

from collections.abc import Iterable, Mapping

import attrs
import numpy as np

from beaver_memory.filters import Filters
from beaver_memory.search.block import SCOPES, STORES, Block
from beaver_memory.search.lexical import Searched
from beaver_memory.search.terms import hash_of, label_hashes
from beaver_memory.store.people import folded, trimmed
from beaver_memory.texts import cleaned, micros, seconds


@attrs.frozen(kw_only=True, eq=False)
class VisibleRows(Searched):
    """The visible units of a block. All others count as stale, so no score depends on them.

    Attributes:
        allowed: the visible units, or `None` for all of them.
        hides: whether filters hide units that are not stale.
    """

    allowed: np.ndarray | None
    hides: bool


def seen(searched: Searched, filters: Filters) -> VisibleRows:
    """Return the visible units of a block."""
    block = searched.block
    mask = allowed(block, filters, searched.stale)
    if searched.frequencies is not None:
        return VisibleRows(
            block=block, stale=None if mask is None else ~mask, live=searched.live, length=searched.length,
            frequencies=searched.frequencies, allowed=mask, hides=mask is not None,
        )  # fmt: skip
    live = searched.live if mask is None else int(np.count_nonzero(mask))
    if mask is None or live == searched.live:
        return VisibleRows(
            block=block, stale=searched.stale, live=live, length=searched.length, allowed=mask, hides=False
        )
    length = int((block.columns["lengths"] * mask).sum(dtype="i8"))
    return VisibleRows(block=block, stale=~mask, live=live, length=length, allowed=mask, hides=True)


def allowed(block: Block, filters: Filters, stale: np.ndarray | None) -> np.ndarray | None:
    """Return the mask of visible units, or `None` for all of them.

    Args:
        block: the units.
        filters: the conditions for visible memories; `owners` is ignored, as a block has one owner.
        stale: units whose memory is forgotten or has changed since.
    """
    masks = [*_by_label(block, filters), *_by_place(block, filters), *_by_time(block, filters)]
    if stale is not None:
        masks.append(~stale)
    if not masks:
        return None
    together = masks[0]
    for mask in masks[1:]:
        together = together & mask
    return together


def _by_label(block: Block, filters: Filters) -> Iterable[np.ndarray]:
    if len(filters.view.stores) < len(STORES):
        yield _among(block.columns["stores"], [STORES.index(store) for store in filters.view.stores])
    if filters.scopes:
        yield _among(block.columns["scopes"], [SCOPES.index(scope) for scope in filters.scopes if scope in SCOPES])
    if filters.types:
        yield _any(block, [f"type:{cleaned(each)}" for each in filters.types])
    for tag in filters.tags:
        yield _any(block, [f"tag:{cleaned(tag)}"])
    if filters.people:
        yield _any(block, [f"person:{folded(person)}" for person in filters.people])
    if filters.file:
        path = trimmed(filters.file)
        yield _any(block, [f"file:{path}", f"dir:{path}"])
    if filters.sources:
        yield _any(block, [f"source:{cleaned(source)}" for source in filters.sources])


def _by_place(block: Block, filters: Filters) -> Iterable[np.ndarray]:
    columns = block.columns
    if filters.view.place is not None:
        yield from _of_project(columns, filters.view.place)
    if filters.view.session:
        of_a_session = columns["scopes"] == SCOPES.index("session")
        yield ~of_a_session | (columns["sessions"] == np.uint64(hash_of(cleaned(filters.view.session))))
    if filters.view.agent:
        yield (columns["agents"] == 0) | (columns["agents"] == np.uint64(hash_of(cleaned(filters.view.agent))))


def _of_project(columns: Mapping[str, np.ndarray], name: str) -> Iterable[np.ndarray]:
    wanted = ("projects", np.uint64(hash_of(name) if name else 0)), ("scopes", SCOPES.index("global"))
    # Mostly all memories are of one project, or all are global, and a column with one value has no room for another.
    if not any(columns[each].strides == (0,) and bool((columns[each][:1] == value).all()) for each, value in wanted):
        (of_project, of_scope) = (columns[each] == value for each, value in wanted)
        yield of_project | of_scope


def _by_time(block: Block, filters: Filters) -> Iterable[np.ndarray]:
    columns = block.columns
    now, then = seconds(micros(filters.view.now), 0.0), seconds(micros(filters.as_of or filters.view.now), 0.0)
    # Mostly no memory ever ends, and comparing the extremes is cheaper than a mask.
    if not filters.lapsed and block.earliest_end <= max(now, then):
        yield (columns["expires"] > now) & (columns["valid_until"] > then)
    if not filters.lapsed and block.latest_start > then:
        yield columns["valid_from"] <= then
    if filters.as_of is not None:
        yield columns["created"] <= then
    if filters.after is not None:
        yield columns["created"] >= seconds(micros(filters.after), 0.0)
    if filters.before is not None:
        yield columns["created"] < seconds(micros(filters.before), 0.0)


def _among(column: np.ndarray, numbers: list[int]) -> np.ndarray:
    mask = np.zeros(len(column), bool)
    for number in numbers:
        mask |= column == number
    return mask


def _any(block: Block, labels: Iterable[str]) -> np.ndarray:
    mask = np.zeros(block.size, bool)
    for hash_ in label_hashes(labels):
        mask[block.labels.units_of(hash_)] = True
    return mask
