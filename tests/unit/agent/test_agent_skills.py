"""Skills: read strictly, found safely, activated by name."""

import os
from pathlib import Path

import pytest
from case_files import rows
from hypothesis import example, given
from hypothesis import strategies as st

from beaver_hooks.agent.errors import SkillError
from beaver_hooks.agent.skills import (
    MOST_BYTES,
    ActiveSkill,
    FrontMatterError,
    Skill,
    SkillLibrary,
    SkillList,
    activation_text,
    parse_skill,
    read_front_matter,
    read_skill,
)

DATA = Path(__file__).with_name("data")
REVIEW = "---\nname: review\ndescription: How we review.\n---\n\nBe kind.\n"


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "skills"
    made.mkdir()
    return made


def write(folder, where, content=REVIEW):
    path = folder / where / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def named(name, text="Do it."):
    return f"---\nname: {name}\n---\n{text}"


def fault(function, *arguments, kind=SkillError):
    with pytest.raises(kind) as caught:
        function(*arguments)
    return str(caught.value)


# --- Front matter ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["name: review"], {"name": "review"}),
        (["name:   review  ", "description:"], {"name": "review", "description": ""}),
        (["", "# a comment", "name: r", "version: 1"], {"name": "r"}),
        (["name: r", "metadata:", "  author: ada", "\tname: eve", "tools:", "- Bash", "  - Read"], {"name": "r"}),
        (["name: r", "other: |", "  name: x", "other: twice"], {"name": "r"}),
        (['name: "r"', 'description: "a: \\"b\\" \\u00fc"'], {"name": "r", "description": 'a: "b" ü'}),
        (["name: 'r'", "description: 'it''s # \"so\"'"], {"name": "r", "description": 'it\'s # "so"'}),
        (["name: r", "description: it's fine # so"], {"name": "r", "description": "it's fine # so"}),
        (["name: 海狸"], {"name": "海狸"}),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_front_matter(lines, expected, end):
    """The reader takes known values, skips others with their indented lines, and accepts every end of line."""
    text = end.join(["---", *lines, "--- ", "", "The text.", "---", "More.", ""])

    assert (expected, "The text.\n---\nMore.") == read_front_matter(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    rows(DATA / "refused_front_matter.jsonl", "text", "problem"),
)
def test_front_matter_that_is_refused(text, problem):
    """The sentence names the rule and the line."""
    assert problem == fault(read_front_matter, text, kind=FrontMatterError)


@given(st.text() | st.lists(st.sampled_from(["---", "name: a", "x: y", " z", "- q", "'", '"', ""])).map("\n".join))
@example("---\nname: a\n---")
def test_front_matter_is_read_or_refused(text):
    """Any front matter is read as values and a text, or refused with a sentence."""
    try:
        values, rest = read_front_matter(text)
    except FrontMatterError:
        return
    assert ({"name", "description"} | set(values), rest.strip()) == ({"name", "description"}, rest)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"---\nname: \xff\n---\nx", "is not UTF-8 text (byte 11); save it as UTF-8"),
        (b"nothing", "has no front matter; begin it with a line `---`"),
        (b"---\nname: r\n---\n \n", "has no instructions after its front matter; write some"),
    ],
)
def test_a_file_that_is_no_skill_is_named(tmp_path, content, problem):
    """The error names the path."""
    path = tmp_path / "SKILL.md"

    assert f"{path} {problem}" == fault(parse_skill, content, path)


def test_a_file_is_a_skill(tmp_path):
    """A skill's text has no byte order mark, and its description is one line of encodable text."""
    path = tmp_path / "SKILL.md"
    content = b'\xef\xbb\xbf---\r\nname: r\r\ndescription: "a\\nb\\ud800"\r\n---\r\nOne.\r\nTwo.'

    assert Skill(name="r", description="a b\ufffd", path=path, text="One.\nTwo.") == parse_skill(content, path)


# --- The library ----------------------------------------------------------------------------------------------


def test_skills_are_listed_and_activated(folder, tmp_path):
    """The library lists the skills of all folders by name, and activates each once in the requested order."""
    other = tmp_path / "more"
    review, test = write(folder, "one"), write(other, "two", named("test"))
    (folder / "no skill").mkdir()
    (folder / "file").write_text("x")
    library = SkillLibrary([folder, str(other)])

    assert (
        SkillList(
            skills=(
                Skill(name="review", description="How we review.", path=review, text="Be kind."),
                Skill(name="test", description="", path=test, text="Do it."),
            )
        )
        == library.list()
    )
    active = (ActiveSkill(name="test", text="Do it."), ActiveSkill(name="review", text="Be kind."))
    assert active == library.activate(["test", "review", "test"])
    assert () == SkillLibrary([tmp_path / "missing"]).activate([])


def test_of_two_of_one_name_the_first_wins(folder, tmp_path):
    """Of two skills with one name the first is used, and the list names the other as a problem."""
    first, second = write(folder, "one", named("a", "first")), write(tmp_path / "more", "one", named("a", "second"))
    library = SkillLibrary([folder, tmp_path / "more"])

    assert (f"{second}: its name `a` is already the name of {first}, which is used instead",) == library.list().problems
    assert (ActiveSkill(name="a", text="first"),) == library.activate(["a"])


def test_an_unknown_skill_is_refused(folder, tmp_path):
    """The error names the probable skill, the known skills, and the unusable ones with their faults."""
    missing = tmp_path / "missing"
    bad = write(folder, "bad", "nothing")
    library = SkillLibrary([folder, missing])
    nothing = fault(library.activate, ["x\x1b"])
    write(folder, "one")
    write(folder, "two", named("test"))

    wrong = (
        f"{bad} has no front matter; begin it with a line `---`; "
        f"the skill folder {missing} cannot be read (No such file or directory); correct its path"
    )
    assert f"there is no skill `x?`; the skills are: none; not usable: {wrong}" == nothing
    assert (
        f"there is no skill `revew` (did you mean `review`?); the skills are: `review`, `test`; not usable: {wrong}"
    ) == fault(library.activate, ["test", "revew"])
    assert "there is no skill `x`; the skills are: none" == fault(SkillLibrary([]).activate, ["x"])


def test_links_that_lead_out_are_not_followed(folder, tmp_path):
    """The library follows no link of a file or folder that leads out of the skill folder, and follows one inside."""
    outside = write(tmp_path, "outside")
    (folder / "linked").symlink_to(outside.parent)
    (folder / "file").mkdir()
    (folder / "file" / "SKILL.md").symlink_to(outside)
    inside = write(folder, "inside", named("inside"))
    (folder / "within").mkdir()
    (folder / "within" / "SKILL.md").symlink_to(inside)
    listed = SkillLibrary([folder]).list()

    out = "is a link to a place outside its skill folder and is not followed; copy the file there"
    assert ["inside"] == [each.name for each in listed.skills]
    assert (
        f"{folder}/file/SKILL.md {out}",
        f"{folder}/linked/SKILL.md {out}",
        f"{folder}/within/SKILL.md: its name `inside` is already the name of {inside}, which is used instead",
    ) == listed.problems


def test_a_skill_folder_may_be_a_link_itself(folder, tmp_path):
    """The configuration names it, so that it is wanted."""
    write(folder, "one")
    (tmp_path / "link").symlink_to(folder)

    assert ["review"] == [each.name for each in SkillLibrary([tmp_path / "link"]).list().skills]


def test_files_that_cannot_be_read_are_named(folder):
    """A pipe is not waited for, a folder is no file, a link to itself or to nothing leads nowhere, and size has an end."""
    pipe = folder / "pipe" / "SKILL.md"
    pipe.parent.mkdir()
    os.mkfifo(pipe)
    (folder / "folder" / "SKILL.md").mkdir(parents=True)
    for where, target in (("loop", "SKILL.md"), ("dangling", "nothing")):
        (folder / where).mkdir()
        (folder / where / "SKILL.md").symlink_to(target)
    write(folder, "large", b"x" * (MOST_BYTES + 1))
    write(folder, "fits", named("fits").ljust(MOST_BYTES, "\n"))
    listed = SkillLibrary([folder]).list()

    said = [problem.removeprefix(f"{folder}/").split("/SKILL.md ") for problem in listed.problems]
    cannot = "cannot be read ({}); check its permissions"
    assert [
        ["dangling", cannot.format("No such file or directory")],
        ["folder", cannot.format("it is not a regular file")],
        ["large", f"is larger than {MOST_BYTES} bytes; shorten it"],
        ["pipe", cannot.format("it is not a regular file")],
    ] == [each for each in said if each[0] != "loop"]
    assert (["loop"], ["fits"]) == (
        [each[0] for each in said if each[0] == "loop"],
        [each.name for each in listed.skills],
    )


def test_what_keeps_one_from_looking_is_said(folder, monkeypatch):
    """A folder that the user may not read is a problem, and not an empty folder."""
    path = write(folder, "closed")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(path), "lstat", refuse)
    monkeypatch.setattr(type(path), "resolve", refuse)
    problem = f"{path} cannot be read (Permission denied); check its permissions"

    assert SkillList(skills=(), problems=(problem,)) == SkillLibrary([folder]).list()


def test_a_link_to_itself_is_a_skill_error(folder):
    """A link to itself raises the one error of skills, whatever Python raises."""
    path = folder / "SKILL.md"
    path.symlink_to("SKILL.md")

    assert fault(read_skill, path, folder).startswith(f"{path} cannot be read (")


def test_a_skill_that_is_not_believed(folder):
    """An unconfirmed skill is a problem with a remedy; the check gets its own path and the content behind the link."""
    write(folder, "real")
    (folder / "linked").mkdir()
    (folder / "linked" / "SKILL.md").symlink_to(folder / "real" / "SKILL.md")
    asked = set()

    def believes(path, content):
        asked.add((path.parent.name, content))
        return path.parent.name != "linked"

    listed = SkillLibrary([folder], believes=believes).list()
    content = (folder / "real" / "SKILL.md").read_bytes()
    problem = "may have come with a repository and is not confirmed; review it with `beaver trust --files`"

    assert (["review"], (f"{folder / 'linked' / 'SKILL.md'} {problem}",)) == (
        [each.name for each in listed.skills],
        listed.problems,
    )
    assert {("real", content), ("linked", content)} == asked


def test_a_skill_that_leads_to_a_file_that_is_not_believed(folder):
    """A link that may be believed is not enough: the file that it leads to has to be, too."""
    write(folder, "linked")
    path, target = folder / "linked" / "SKILL.md", folder / "target.md"
    path.rename(target)
    path.symlink_to(target)

    said = fault(read_skill, path, folder, lambda asked, _: asked != target)

    assert said.startswith(f"{path} may have come with a repository and is not confirmed")
    assert "review" == read_skill(path, folder, lambda *_: True).name


def test_the_activation_names_the_skill():
    """The activation names the skill and marks its end."""
    assert (
        "The skill `review` is active. These are its instructions; follow them where they apply.\n\n"
        "Be kind.\n\nEnd of the skill `review`."
    ) == activation_text(ActiveSkill(name="review", text="Be kind."))
