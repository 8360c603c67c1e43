"""Skills: folders with a `SKILL.md` that a user activates by name.

    skills/                 a folder of the configuration
      review/SKILL.md       one skill

A skill that cannot be read does not affect the others; the list contains its fault, and activating it raises an error.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import attrs
from attrs import field

from beaver_hooks.agent.errors import SkillError
from beaver_hooks.config.paths import did_you_mean, printable
from beaver_hooks.text import presentable
from beaver_toolkit.files import open_regular

FILE = "SKILL.md"
MOST_BYTES = 256 * 1024

FENCE = "---"
NAME = re.compile(r"\w[\w.-]{0,63}")
KNOWN = ("name", "description")

_LINE = re.compile(r"([A-Za-z][A-Za-z0-9_-]*):(?:[ \t]+(.*))?")
_BLOCK = re.compile(r"[|>][+-]?\d?[+-]?")
"""The beginning of a text of several lines in YAML."""


@attrs.frozen(kw_only=True)
class Skill:
    """A skill that can be activated.

    Attributes:
        name: the name that activates it.
        description: its purpose, in a line.
        path: its `SKILL.md`.
        text: its instructions.
    """

    name: str
    description: str
    path: Path
    text: str = field(repr=False)


@attrs.frozen(kw_only=True)
class ActiveSkill:
    """A skill that is in effect."""

    name: str
    text: str = field(repr=False)


@attrs.frozen(kw_only=True)
class SkillList:
    """The content of a library.

    Attributes:
        skills: the skills that can be activated, by name.
        problems: one sentence with the reason for each that cannot.
    """

    skills: tuple[Skill, ...]
    problems: tuple[str, ...] = ()


Believes = Callable[[Path, bytes], bool]


def believe_all(_path: Path, _content: bytes) -> bool:
    """Believe every file."""
    return True


class SkillLibrary:
    """The skills in some folders. Of two with one name the first folder's wins, and the list reports the other.

    Each call reads the folders anew, so that a new skill can be used at once. It reads files: call it in a thread
    if blocking matters.

    Args:
        folders: the folders.
        believes: whether a file with its content may be believed; by default every file.
    """

    def __init__(self, folders: Iterable[Path | str], *, believes: Believes = believe_all) -> None:
        self._folders = tuple(Path(each) for each in folders)
        self._believes = believes

    def list(self) -> SkillList:
        """Return every skill, by name, and the faults of others."""
        skills: dict[str, Skill] = {}
        problems: list[str] = []
        for found in self._found():
            if isinstance(found, SkillError):
                problems.append(str(found))
            elif found.name in skills:
                first = _shown(skills[found.name].path)
                problems.append(
                    f"{_shown(found.path)}: its name `{found.name}` is already the name of {first}, which is used"
                    " instead"
                )
            else:
                skills[found.name] = found
        return SkillList(skills=tuple(skills[name] for name in sorted(skills)), problems=tuple(problems))

    def activate(self, names: Iterable[str]) -> tuple[ActiveSkill, ...]:
        """Return the skills of these names, in this order, each once.

        Raises:
            SkillError: a skill does not exist; the message lists those that do and the faults of others.
        """
        wanted = tuple(dict.fromkeys(names))
        if not wanted:
            return ()
        listed = self.list()
        skills = {each.name: each for each in listed.skills}
        for name in wanted:
            if name not in skills:
                raise SkillError(_unknown(name, tuple(skills), listed.problems))
        return tuple(ActiveSkill(name=name, text=skills[name].text) for name in wanted)

    def _found(self) -> Iterator[Skill | SkillError]:
        for folder in self._folders:
            try:
                paths = sorted(each / FILE for each in folder.iterdir() if each.is_dir())
            except OSError as error:
                yield SkillError(f"the skill folder {_shown(folder)} cannot be read ({_why(error)}); correct its path")
                continue
            for path in paths:
                if _is_there(path):
                    yield _load(path, folder, self._believes)


def read_skill(path: Path, folder: Path, believes: Believes = believe_all) -> Skill:
    """Return the skill whose `SKILL.md` is at `path`, inside `folder`.

    Raises:
        SkillError: it cannot be read or believed, leads out of the folder or is malformed; names the path.
    """
    try:
        real = path.resolve(strict=True)
        if not real.is_relative_to(folder.resolve()):
            raise _fault(path, "is a link to a place outside its skill folder and is not followed; copy the file there")
        content = _read(real)
    except (OSError, RuntimeError) as error:  # a link to itself is a RuntimeError before Python 3.13
        raise _fault(path, f"cannot be read ({_why(error)}); check its permissions") from None
    if len(content) > MOST_BYTES:
        raise _fault(path, f"is larger than {MOST_BYTES} bytes; shorten it")
    # A link and its target.
    if not all(believes(each, content) for each in {path, real}):
        raise _fault(
            path, "may have come with a repository and is not confirmed; review it with `beaver trust --files`"
        )
    return parse_skill(content, path)


def parse_skill(content: bytes, path: Path) -> Skill:
    """Return the skill in a `SKILL.md`; `path` is for the record and the error.

    Raises:
        SkillError: it is malformed; names the path.
    """
    try:
        values, text = read_front_matter(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise _fault(path, f"is not UTF-8 text (byte {error.start + 1}); save it as UTF-8") from None
    except FrontMatterError as error:
        raise _fault(path, str(error)) from None
    if not text:
        raise _fault(path, "has no instructions after its front matter; write some")
    description = presentable(" ".join(values.get("description", "").split()))
    return Skill(name=values["name"], description=description, path=path, text=text)


def activation_text(skill: ActiveSkill) -> str:
    """Return the message, role `user`, that puts a skill into effect."""
    return (
        f"The skill `{skill.name}` is active. These are its instructions; follow them where they apply.\n\n"
        f"{skill.text}\n\n"
        f"End of the skill `{skill.name}`."
    )


def _is_there(path: Path) -> bool:
    """Whether a file or a link exists, or an error hides it."""
    try:
        path.lstat()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def _load(path: Path, folder: Path, believes: Believes) -> Skill | SkillError:
    try:
        return read_skill(path, folder, believes)
    except SkillError as error:
        return error


def _read(path: Path) -> bytes:
    with open_regular(path) as file:
        return file.read(MOST_BYTES + 1)


def _unknown(name: str, known: Sequence[str], problems: Sequence[str]) -> str:
    listed = ", ".join(f"`{each}`" for each in known) or "none"
    wrong = f"; not usable: {'; '.join(problems)}" if problems else ""
    return f"there is no skill `{printable(name[:64])}`{did_you_mean(name, known)}; the skills are: {listed}{wrong}"


def _fault(path: Path, problem: str) -> SkillError:
    return SkillError(f"{_shown(path)} {problem}")


def _shown(path: Path) -> str:
    return printable(str(path))


def _why(error: OSError | RuntimeError) -> str:
    return getattr(error, "strerror", None) or "it cannot be opened"


class FrontMatterError(Exception):
    """The front matter is malformed; the text names the fault and follows the path of the file."""


def read_front_matter(text: str) -> tuple[Mapping[str, str], str]:
    """Return the known values and the text after the front matter.

    Raises:
        FrontMatterError: a rule is broken; names the line.
    """
    lines = re.split(r"\r\n|\r|\n", text)
    # Rule 1.
    if lines[0].rstrip() != FENCE:
        raise FrontMatterError("has no front matter; begin it with a line `---`")
    ends = [number for number, line in enumerate(lines) if number and line.rstrip() == FENCE]
    if not ends:
        raise FrontMatterError("has front matter that does not end; close it with a line `---`")
    values = _values(lines[1 : ends[0]])
    if NAME.fullmatch(values.get("name", "")) is None:
        raise FrontMatterError("has no usable name; add `name: a-word` to its front matter")
    return MappingProxyType(values), "\n".join(lines[ends[0] + 1 :]).strip()


def _values(lines: Iterable[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    key = ""
    for number, line in enumerate(lines, 2):
        # Rule 2.
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line.rstrip())
        if match is None:
            _check_continued(line, key, number)
            continue
        key = match[1]
        if key in KNOWN:
            if key in values:
                raise FrontMatterError(f"gives `{key}` twice (line {number})")
            values[key] = _value(match[2] or "", key, number)
    return values


def _check_continued(line: str, key: str, number: int) -> None:
    """Rule 4."""
    if key in KNOWN:
        raise FrontMatterError(f"has a `{key}` of several lines (line {number}); write it on one")
    if not key or not line.startswith((" ", "\t", "-")):
        raise FrontMatterError(f"has a line that is not `key: value` (line {number})")


def _value(text: str, key: str, number: int) -> str:
    """Rule 3."""
    text = text.strip()
    if _BLOCK.fullmatch(text):
        raise FrontMatterError(f"has a `{key}` of several lines (line {number}); write it on one")
    if text.startswith("'"):
        if re.fullmatch(r"'(?:[^']|'')*'", text):
            return text[1:-1].replace("''", "'")
    elif not text.startswith('"'):
        return text
    else:
        return _unquoted(text, key, number)
    raise _badly_quoted(key, number)


def _unquoted(text: str, key: str, number: int) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        raise _badly_quoted(key, number) from None
    return str(value)


def _badly_quoted(key: str, number: int) -> FrontMatterError:
    return FrontMatterError(f"has a `{key}` with a quote that is not closed (line {number})")
