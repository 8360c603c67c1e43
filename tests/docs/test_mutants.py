"""The sample of mutants changes behaviour only, is the same for a seed, and runs in a copy of the tree."""

import ast
import subprocess
from pathlib import Path

import pytest
from coverage import CoverageData

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tools(monkeypatch):
    """The folder of the scripts, from which the modules are imported."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))


@pytest.fixture
def mutants(tools, monkeypatch, tmp_path):
    """The command, over a project of two modules with a run of their tests."""
    import mutant_tests
    import mutants

    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    monkeypatch.setattr(mutant_tests, "STORED", tmp_path)
    (tmp_path / "a.py").write_text("A = 1\n" * 30)
    (tmp_path / "b.py").write_text("def b():\n    c()\n    return 2\n")
    data = CoverageData(str(tmp_path / "lines"))
    for context, lines in {"": [1], "slow": [2, 3], "quick (call)": [2], "broken": [2, 3]}.items():
        data.set_context(context)
        data.add_lines({str(tmp_path / "b.py"): lines})
    data.write()
    return mutants


@pytest.mark.parametrize(
    ("text", "mutated"),
    [
        ("a < b", {"a <= b", "a >= b"}),
        ("(a or\n b) is not c", {"(a and\n b) is not c", "(a or\n b) is c"}),
        ("a not in b and not (c)", {"a in b and not (c)", "a not in b or not (c)", "a not in b and (c)"}),
        ("é = 'ä' + a['key'] * 2", {"é = 'ä_' + a['key'] * 2", "é = 'ä' + a['key_'] * 2", "é = 'ä' + a['key'] / 2",
                                    "é = 'ä' + a['key'] * 3"}),
        ("a.b = True", {"pass", "a.b = False"}),
        ("x = 1.5", {"x = 4.0"}),
        ("if a:\n    raise b", {"if not (a):\n    raise b", "if a:\n    pass"}),
        ("for a in b:\n    break", {"for a in b:\n    continue"}),
        ("def f(a=0):\n    return a", {"def f(a=1):\n    return a", "def f(a=0):\n    return None"}),
        ("async def f():\n    await g()\n    a += b", {"async def f():\n    pass\n    a += b",
                                                      "async def f():\n    await g()\n    pass"}),
    ],
)  # fmt: skip
def test_the_mutations_of_a_text(tools, text, mutated):
    """Operators, conditions, constants, results and statements are changed, and the rest of the text stays."""
    from mutations import mutations

    assert mutated == {mutation.apply(text) for mutation in mutations(text)}


@pytest.mark.parametrize(
    "text",
    [
        '"""A module."""',
        "x: Literal['a'] | None",
        "def f(a: 'A') -> 'B': ...",
        "@mark(1)\nclass A:\n    pass",
        "@overload\ndef f(a=1): ...",
        "__all__ = ['a']",
        "if TYPE_CHECKING:\n    a = 1",
        "self._log.debug('b', c=1)",
        "x = f'{a + 1} words'",
        "x = 'A text for people.'",
        "T = TypeVar('T')",
        "class A:\n    a: int = field(init=False)",
        "for a, b in zip(c, d, strict=True): ...",
    ],
)
def test_what_is_no_behaviour(tools, text):
    """Docstrings, annotations, exports, log lines and prose are left alone."""
    from mutations import mutations

    assert [] == mutations(text)


def test_every_mutation_of_a_module_is_python(tools):
    """A mutant fails in a test, not in the parser."""
    from mutations import mutations

    text = (ROOT / "tools" / "mutations.py").read_text("utf-8")

    assert [] == [each for each in mutations(text)[::20] if not ast.parse(each.apply(text))]


def test_the_mutations_at_import(tools):
    """Constants and defaults are known to run at import, and bodies of functions not."""
    from mutations import mutations

    text = "A = 1\ndef f(a=2, b=lambda: 3):\n    def g(c=4): ...\nclass B:\n    c = 5\n"

    assert [("2", True), ("3", True), ("4", False), ("5", False), ("6", True)] == [
        (mutation.new, mutation.at_import) for mutation in mutations(text)
    ]


def test_the_shares_of_parts(mutants):
    """Each part gets mutants in proportion to its lines, and the largest remainders get the rest."""
    assert {"a": 7, "b": 2, "c": 1} == mutants.shares({"a": 66, "b": 24, "c": 10}, 10)


def test_the_choice(mutants):
    """A seed chooses the same mutants each time, another seed others, and no line is chosen twice."""
    modules = {"one": ["a.py"], "two": ["b.py"]}
    chosen = [tuple(mutants.chosen(modules, 11, seed)) for seed in (1, 1, 2)]

    assert chosen[0] == chosen[1] != chosen[2]
    assert {"one": 10, "two": 1} == {part: [each.part for each in chosen[0]].count(part) for part in modules}
    assert 11 == len({(each.path, each.mutation.lines) for each in chosen[0]})


@pytest.mark.parametrize(
    ("lines", "tests"),
    [((2,), ["quick", "slow"]), ((3,), ["slow"]), ((2, 3), ["quick", "slow"]), ((), ["quick", "slow"])],
)
def test_the_tests_of_lines(mutants, tmp_path, lines, tests):
    """The quickest come first, without those that fail anyway; without a line they are those of the module."""
    seconds = {"slow": 2.0, "quick": 1.0, "broken": 0.5}

    assert tests == mutants.Baseline("", "", str(tmp_path), seconds, {}, ["broken"]).tests("b.py", lines)


def test_the_order_of_tests(mutants, tmp_path):
    """A test that executes few modules comes before quicker ones."""
    seconds = {"slow": 2.0, "quick": 1.0}

    assert ["slow", "quick"] == mutants.Baseline("", "", str(tmp_path), seconds, {"quick": 2, "slow": 1}, []).tests(
        "b.py", [2]
    )


@pytest.mark.parametrize(("alive", "code"), [(0, 0), (1, 0), (2, 1)])
def test_the_exit_code(mutants, capsys, alive, code):
    """Below 95 % the exit code is 1, and each survivor is shown as a diff."""
    mutant = next(mutants.at("b.py:3"))
    outcomes = [(mutant, mutants.Outcome(None if number < alive else "test", 0.0)) for number in range(20)]

    assert code == mutants.report(outcomes)
    assert alive == capsys.readouterr().out.count("\n-    return 2\n+    return 3")


def test_a_copy_imports_its_own_packages(tools, tmp_path):
    """A process in a copy imports what the copy holds, a plugin too, and the original stays as it is."""
    from tree_copies import copy_tree, write_source

    tree = copy_tree(tmp_path / "tree")
    plugin = Path("plugins/curated/src/beaver_hooks_curated/__init__.py")
    write_source(tree / plugin, "MARK = 'mutated'\n")
    code = "import beaver_hooks_curated as a, beaver_hooks as b; print(a.MARK, b.__file__)"
    ran = subprocess.run(
        [tree / ".venv" / "bin" / "python", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert (f"mutated {tree}/beaver_hooks/__init__.py\n", "") == (ran.stdout, ran.stderr)
    assert "mutated" not in (ROOT / plugin).read_text("utf-8")


@pytest.mark.campaign
def test_the_lines_of_tests(tools, tmp_path, monkeypatch):
    """One run of the tests tells which of them execute a line, in a process that they start too."""
    import mutant_tests

    monkeypatch.setattr(mutant_tests, "STORED", tmp_path)
    started = "tests/unit/adapters/test_adapters_imports.py::test_the_host_loads_no_adapter"
    measured = mutant_tests.measure(tmp_path, started)

    assert ([], [started]) == (measured.failed, measured.tests("beaver_hooks/host.py", range(1, 100)))
