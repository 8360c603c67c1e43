"""Skills: folders with a `SKILL.md` that a user activates by name.

    skills/                 a folder of the configuration
      review/SKILL.md       one skill

A skill that cannot be read does not affect the others; the list contains its fault, and activating it raises an error.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import attrs
from attrs import field

from beaver_hooks.agent.errors import SkillError
from beaver_hooks.agent.front_matter import FrontMatterError, read_front_matter
from beaver_hooks.config.paths import printable
from beaver_hooks.config.suggestions import did_you_mean
from beaver_hooks.text import presentable
from beaver_toolkit.files import open_regular

FILE = "SKILL.md"
MOST_BYTES = 256 * 1024


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
