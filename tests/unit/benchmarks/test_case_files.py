"""Files of cases: each line is one case, and a wrong line is named."""

import attrs
import pytest
from case_files import WrongCase, cases


@attrs.frozen(kw_only=True)
class Case:
    text: str
    number: int = 0
    wanted: bool = False
    rows: tuple[tuple[str, ...], ...] = ()


@pytest.fixture
def read(tmp_path):
    """Read a file with some bytes."""

    def read(written):
        path = tmp_path / "cases.jsonl"
        path.write_bytes(written)
        return cases(path, Case)

    return read


def test_each_line_is_a_case(read):
    """Each line becomes a case, in order; fields that a line leaves out have their defaults."""
    found = read('{"text": "ä\u2028"}\n{"text": "", "number": 2, "wanted": true, "rows": [["a", "b"], []]}\n'.encode())

    assert (Case(text="ä\u2028"), Case(text="", number=2, wanted=True, rows=(("a", "b"), ()))) == found


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        (b"", "the line is not valid JSON (line 1, column 1)"),
        (b'{"text": "\xff"}', "the line is not UTF-8 text (byte 11)"),
        (b'["text"]', "the line is no JSON object"),
        (b'{"text": "a", "text": "b"}', "the line gives a key twice in one object"),
        (b"{}", "required field missing @ $.text"),
        (b'{"text": "a", "word": "b"}', "extra fields found (word) @ $"),
        (b'{"text": 1}', "invalid value for type, expected str @ $.text"),
        (b'{"text": "a", "number": true}', "invalid value for type, expected int @ $.number"),
        (b'{"text": "a", "wanted": 1}', "invalid value for type, expected bool @ $.wanted"),
        (b'{"text": "a", "rows": "bc"}', "invalid value for type, expected tuple @ $.rows"),
        (b'{"text": "a", "rows": ["bc"]}', "invalid value for type, expected tuple @ $.rows[0]"),
    ],
)
def test_a_wrong_line_is_named(read, tmp_path, line, wrong):
    """A line that is no object with exactly the fields of a case is an error that names the file and the line."""
    with pytest.raises(WrongCase) as error:
        read(b'{"text": "a"}\n' + line + b"\n")

    assert f"{tmp_path / 'cases.jsonl'}:2: {wrong}" == str(error.value)
