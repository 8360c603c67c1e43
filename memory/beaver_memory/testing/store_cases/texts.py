"""Rules for texts and moments of every kind."""

from datetime import UTC, datetime
from typing import Any

from beaver_memory.records import LONGEST_TEXT, Owner, SessionSummary
from beaver_memory.store.fingerprint import hash_of
from beaver_memory.testing.store_cases.kit import NOW, OpenStore, agree, holds, looking, new, titles, using
from beaver_memory.views import ALL_PROJECTS

KEPT = ("é", "e\u0301", "日本語", "😀", "\u202e x", "a\nb\tc", '"\\n"', "%_*'", "\x01\x1f", "\ufeff x", " spaced ")


def texts_come_back(open_store: OpenStore) -> None:
    """Any Unicode text comes back as it was, in every field."""
    with using(open_store) as store:
        fields: dict[str, Any] = {
            "narrative": "".join(KEPT),
            "facts": KEPT,
            "tags": KEPT,
            "related_people": KEPT,
            "keywords": KEPT,
        }
        ids = store.add([new(text, related_files=KEPT, speaker=text, **fields) for text in KEPT], now=NOW)
        found = store.get(ids, looking())
        agree([*KEPT], titles(found))
        agree([KEPT] * len(KEPT), [memory.facts for memory in found])
        agree([("".join(KEPT), KEPT, KEPT)] * len(KEPT), [(m.narrative, m.tags, m.related_files) for m in found])
        for text in KEPT:
            agree(len(KEPT), len(store.recent(looking(tags=(text,)), limit=99)), f"the tag {text!r}")
            agree(len(KEPT), len(store.recent(looking(people=(text.upper(),)), limit=99)), f"the person {text!r}")
            agree(len(KEPT), len(store.recent(looking(file=text), limit=99)), f"the file {text!r}")


def what_is_no_text(open_store: OpenStore) -> None:
    """NUL and lone surrogates become U+FFFD in every stored field, and in questions too."""
    bad, good = "a\0b\ud800c\udfff", "a\ufffdb\ufffdc\ufffd"
    owner = Owner(tenant=bad, user=bad)
    lists: dict[str, Any] = {
        "facts": (bad,),
        "tags": (bad,),
        "keywords": (bad,),
        "related_people": (bad,),
        "related_files": (bad,),
    }
    named = ("narrative", "summary", "type", "project", "session", "agent", "speaker", "source")
    texts: dict[str, Any] = dict.fromkeys(named, bad)
    with using(open_store) as store:
        (id_,) = store.add([new(bad, owner=owner, **lists, **texts)], now=NOW)
        filters = looking(
            owners=(owner,),
            types=(bad,),
            tags=(bad,),
            people=(bad,),
            file=bad,
            project=bad,
            session=bad,
            agent=bad,
            sources=(bad,),
        )
        (found,) = store.recent(filters, limit=9)
        agree((good, good, (good,), (good,), good), (found.title, found.narrative, found.facts, found.tags, found.type))
        agree(hash_of(good, (good,)), found.hash)
        agree([good], [person.name for person in store.people(filters, query=bad, limit=9)])
        agree([(id_, f"{good}\n{good}\n{good}")], store.unembedded(owner, bad, ALL_PROJECTS, limit=9))
        changed = store.change(id_, filters, event=bad, now=NOW, summary=f"{bad}!", tags=(bad, "t"))
        agree((f"{good}!", (good, "t")), changed and (changed.summary, changed.tags))
        agree(good, store.history(id_, filters)[-1].event)
        store.summarise(owner, SessionSummary(session=bad, request=bad, decisions=(bad,), created_at=NOW))
        agree([(good, (good,))], [(each.request, each.decisions) for each in store.summaries(owner, limit=9)])


def long_texts(open_store: OpenStore) -> None:
    """The longest possible text of a memory comes back whole, and can be forgotten."""
    text = "wörd " * (LONGEST_TEXT // 5)
    with using(open_store) as store:
        (id_,) = store.add([new("long", narrative=text)], now=NOW)
        holds(store.get([id_], looking())[0].narrative == text)
        agree([id_], store.forget([id_], looking(), now=NOW))
        agree([], store.check(None))


def moments_at_the_edges(open_store: OpenStore) -> None:
    """The first and the last moment that a `datetime` can hold are kept to the microsecond."""
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    with using(open_store) as store:
        ids = store.add([new("a", created_at=first), new("b", created_at=first, valid_until=last)], now=NOW)
        agree([(first, None), (first, last)], [(m.created_at, m.valid_until) for m in store.get(ids, looking())])


CASES = (texts_come_back, what_is_no_text, long_texts, moments_at_the_edges)
