"""Where an error was raised: the plugin's own line, and no source text."""

import types

import pytest

from beaver_hooks.receipts.traceback_location import MOST_FRAMES, frames_of, place_of


def made(source, module, **names):
    """Return the function `f` of a module of that name, in whose first line it begins."""
    space = {"__name__": module, **names}
    code = next(each for each in compile(source, "<made>", "exec").co_consts if isinstance(each, types.CodeType))
    return types.FunctionType(code, space)


def failing(module):
    """Return a function of that module that raises in its second line."""
    return made("def fail():\n    raise ValueError('secret')", module, ValueError=ValueError)


def run(function, *args):
    """Return what a function raises, without the frame of this test."""
    with pytest.raises(ValueError, match="secret") as caught:
        function(*args)
    return caught.value.with_traceback(caught.value.__traceback__.tb_next)


@pytest.mark.parametrize(
    ("outer", "inner", "place", "frames"),
    [
        ("notes.hooks", "notes.store", "notes.store:2", ["notes.hooks:1 in hook", "notes.store:2 in fail"]),
        ("notes", "httpx.client", "notes:1", ["notes:1 in hook", "httpx.client:2 in fail"]),
        ("beaver_hooks.calls", "notes", "notes:2", ["notes:2 in fail"]),
        (
            "beaver_hooks.a", "beaver_hooks.b", "beaver_hooks.b:2",
            ["beaver_hooks.a:1 in hook", "beaver_hooks.b:2 in fail"],
        ),
        (None, "notes", "unknown:1", ["unknown:1 in hook", "notes:2 in fail"]),
    ],
)  # fmt: skip
def test_places(outer, inner, place, frames):
    """The place is in the plugin's own package, below the host's frames and above those of its libraries."""
    error = run(made("def hook(): fail()", outer, fail=failing(inner)))

    assert (place_of(error), [str(frame) for frame in frames_of(error)]) == (place, frames)


def test_an_error_that_was_never_raised():
    """It has no place."""
    assert (place_of(ValueError()), frames_of(ValueError())) == (None, ())


def test_a_deep_recursion():
    """The innermost frames are kept."""
    names = {"fail": failing("notes")}
    names["again"] = made("def again(n): again(n - 1) if n else fail()", "notes", **names)
    names["again"].__globals__["again"] = names["again"]
    error = run(names["again"], 50)

    assert len(frames_of(error)) == MOST_FRAMES
    assert str(frames_of(error)[-1]) == "notes:2 in fail"
