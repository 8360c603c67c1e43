"""Labels by which memories are filtered."""

from collections.abc import Iterable

from beaver_memory.texts import cleaned

PERSON = "person:"
_COLUMNS = ("store", "type", "scope", "project", "session", "agent", "source")


def folded(name: str) -> str:
    """Return a name without the differences of its spellings."""
    return cleaned(name).casefold()


def trimmed(path: str) -> str:
    """Return a path without slashes at its end."""
    return cleaned(path).rstrip("/") or "/"


def folders(path: str) -> list[str]:
    """Return each folder above a path, innermost first."""
    path, found = trimmed(path), []
    end = path.rfind("/")
    while end > 0:
        found.append(trimmed(path[:end]))
        end = path.rfind("/", 0, end)
    if path.startswith("/") and path != "/":
        found.append("/")
    return list(dict.fromkeys(found))


def tag_label(tag: str) -> str:
    """Return the label of a tag in the side table."""
    return f"tag:{cleaned(tag)}"


def person_label(name: str) -> str:
    """Return the label of a person in the side table."""
    return PERSON + folded(name)


def path_label(path: str) -> str:
    """Return the label of a path in the side table: a memory has one for each file and each folder above it."""
    return f"path:{trimmed(path)}"


def narrow_labels(tags: Iterable[str], files: Iterable[str], people: Iterable[str]) -> list[str]:
    """Return the labels of a memory in the side table: a filter by file is one label there."""
    found = [tag_label(tag) for tag in tags]
    found += [person_label(name) for name in people]
    for path in files:
        found += map(path_label, (path, *folders(path)))
    return list(dict.fromkeys(found))


def labels_of(
    columns: tuple[str, ...], tags: Iterable[str], files: Iterable[str], people: Iterable[str]
) -> tuple[str, ...]:
    """Return all labels of a memory, for an index.

    Args:
        columns: its store, type, scope, project, session, agent and source. A memory without a project, session or
            agent has the label `project:`, `session:` or `agent:`.
        tags: its tags.
        files: its related files.
        people: its related people.
    """
    found = [f"{name}:{value}" for name, value in zip(_COLUMNS, columns, strict=True)]
    found += [tag_label(tag) for tag in tags]
    found += [person_label(name) for name in people]
    for path in files:
        found.append(f"file:{trimmed(path)}")
        found += [f"dir:{folder}" for folder in folders(path)]
    return tuple(dict.fromkeys(found))
