"""JSON that must be refused, JSON that must be accepted, and JSON of which a parser may do either."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_toolkit import strict_json
from beaver_toolkit.strict_json import InvalidJson, is_utf8, loads, repeated_keys

DEEPEST = 100
MOST_MARKS = 20_000
PROBLEM = re.compile(
    r"(is|has|holds|gives) [A-Za-z0-9 \-]+( \((there is a trailing comma, )?(line \d+, column \d+|byte \d+)\))?"
    r"|holds -?(NaN|Infinity), which JSON does not have"
)
LIMITS = {"deepest": DEEPEST, "most_marks": MOST_MARKS}

NUMBERS = ["-", "+1", "01", "-01", "1.", ".5", "-.5", "1e", "1e+", "1.e1", "1eE2", "0x10", "1_000", "--1", "1-", "NaN",
           "nan", "-NaN", "Infinity", "-Infinity", "inf", "Inf", "1 2", "1a", "- 1", "٣", "１", "1,5", "0e", "1e1.5",
           "0.1.2", "1+2", "0b1", "1L", "½", "²"]  # fmt: skip
STRINGS = [r'"\x41"', r'"\a"', r'"\u12"', r'"\u12G4"', r'"\u"', r'"\"', '"', '"a', "'a'", '"a\nb"', '"a\tb"', '"\0"',
           '"\x1f"', "a", '"a"b"', r'"\U00000041"', r'"\ "', r'"\u 123"', r'"\u+123"', r'"\u0x12"', '"a" "b"', "`a`",
           "“a”", r"\u0041", r'\"a\"']  # fmt: skip
LITERALS = ["nul", "nulll", "True", "FALSE", "None", "undefined", "tru", "truefalse", "true false", "null,", "yes"]
LISTS = ["[", "]", "[1", "[1,", "[,1]", "[1,]", "[,]", "[1,,2]", "[1 2]", "[1;2]", "[1:2]", "[[1]", "[1]]", "[1}", "(1)",
         "[1]x", "[*]", "[1\v]", "[1\f]", "[1\u00a0]", "[1\u2060]", "[1\ufeff]", "[...]", "[/**/1]", "[1//\n]"]  # fmt: skip
OBJECTS = ["{", "}", "{]", '{"a"}', '{"a":}', '{"a" 1}', '{"a":1,}', '{,"a":1}', "{a:1}", "{'a':1}", "{1:1}", "{null:1}",
           '{"a":1 "b":2}', '{"a"::1}', '{"a":1}}', '{"a":1', '{"a"', '{"a":', '{"a":1,,"b":2}', "{[1]:1}", '{"a":1;}',
           '{"a"=1}', '{"a":1}#', '{"a":/**/1}', '{"a":1}//', "{{}}", '{"a":"b}', "{true:1}", "{:1}"]  # fmt: skip
WHOLES = ["", " ", "\n", "\ufeff", "<html>", "//", "/**/{}", "{}{}", "{}[]", "[]{}", "1 1", "\x00", "{}\x00",
          "\u00a0{}", "\v1", "\f1", "{} .", "#{}", "\u2028{}"]  # fmt: skip
BYTES = [b"\xff", b'"\xff"', b'"\xc3"', b'"\xed\xa0\x80"', b'"\xc0\xaf"', b'"\xf4\x90\x80\x80"', b'"\xe2\x82"', b"\xfe\xff",
         b"\xff\xfe{\x00}\x00", b"\x00{\x00}", b"{\x00}\x00", b'"\xf8\x88\x80\x80\x80"', b"[\xe9]", b'{"\xb9":1}']  # fmt: skip
SCALARS = [*NUMBERS, *STRINGS, *LITERALS]
MUST_REJECT = [
    *(text.encode("utf-8") for text in (*SCALARS, *LISTS, *OBJECTS, *WHOLES)),
    *(f"[{text}]".encode() for text in SCALARS if text not in {"1 2", "1,5", "null,"}),
    *BYTES,
    b"[" * 50_000,
    b"[" * 50_000 + b"]" * 50_000,
    b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    b"[" + b"[]," * MOST_MARKS + b"[]]",
    b"9" * 5_000,
]
"""More of them than the 188 of the usual collection of such cases."""

GOOD_SCALARS = ["0", "-0", "1", "-1", "10", "1.5", "-1.5", "0.0", "1e5", "1E5", "1e+5", "1e-5", "1.5e10", "-0e1", "123456789",
                "0e1", "0E+1", "9007199254740993", "1.7976931348623157e308", "4e-400", "true", "false", "null", '""', '"a"',
                '" "', r'"\""', r'"\\"', r'"\/"', r'"\b\f\n\r\t"', r'"\u0041"', r'"\u0000"', r'"\ud83d\ude00"', '"é"',
                '"漢"', '"😀"', '"\x7f"', '"\u2028"', '"\ufeff"', '"\uffff"', r'"\uFFFF"', r'"\\u0041"', '"/"',
                '"//"', '"{"', '"]"', '"\u200b"']  # fmt: skip
GOOD_WHOLES = ["[]", "{}", "\ufeff{}", "[1]", "[1,2]", '{"a":1}', '{"a":{"b":[]}}', '{"":0}', '{"a":1,"a":2}', '{"a":1,"a":1}',
               r'{"\u0061":1,"a":2}', "[[[[]]]]", '[{"a":[{"b":null}]}]', " [ 1 , 2 ] ", "\r\n\t{}\n", '{"é":"é"}',
               "[" * 100 + "]" * 100, '{"a":[1,"b",null,true,{}]}']  # fmt: skip
MUST_ACCEPT = [text.encode() for text in (*GOOD_SCALARS, *(f"[{each}]" for each in GOOD_SCALARS), *GOOD_WHOLES)]
"""More than the usual 95."""


def test_there_are_enough_cases():
    """The cases are at least as many as in the usual collection, and none must be both refused and accepted."""
    assert [True, True] == [len({*MUST_REJECT}) >= 188, len({*MUST_ACCEPT}) >= 95]
    assert set() == {*MUST_REJECT} & {*MUST_ACCEPT}


@pytest.mark.shows("000-133")
def test_must_reject():
    """Invalid JSON is refused with a sentence, and the error chains no other error that holds the text."""
    for body in MUST_REJECT:
        with pytest.raises(InvalidJson) as caught:
            loads(body, **LIMITS)
        assert (None, None) == (caught.value.__cause__, caught.value.__context__), body[:40]
        assert PROBLEM.fullmatch(caught.value.problem), (body[:40], caught.value.problem)


def test_must_accept():
    """Valid JSON is read as the standard library reads it, from bytes and from text."""
    for body in MUST_ACCEPT:
        expected = json.loads(body.decode("utf-8-sig"))
        assert [expected] * 2 == [
            loads(body, keep_repeated=True, **LIMITS),
            loads(body.decode(), keep_repeated=True, **LIMITS),
        ], body[:40]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b'{"a": 1,}', "is not valid JSON (there is a trailing comma, line 1, column 8)"),
        (b'{"a":\n  oops}', "is not valid JSON (line 2, column 3)"),
        (b'{"a": "\xff"}', "is not UTF-8 text (byte 8)"),
        (b'{"b": [{"a": 1, "a": 1}]}', "gives a key twice in one object"),
        (b"[NaN]", "holds NaN, which JSON does not have"),
        (b"[1e999]", "holds a number that is too large"),
        (b"1" * 101, "holds a number of more than 100 digits"),
        (
            b'{"a":' * 9 + b"\n" + b"[" * 42 + b"]" * 42 + b"}" * 9,
            "is nested more than 50 levels deep (line 2, column 42)",
        ),
    ],
)
def test_the_problem_is_named(body, problem):
    """The error is the end of a sentence, and says where, as far as that is known."""
    with pytest.raises(InvalidJson) as caught:
        loads(body)

    assert problem == caught.value.problem == str(caught.value)


def test_what_a_caller_names_is_kept():
    """A caller that names the field gets numbers beyond reason as they are, and the keys that are given twice."""
    value = loads('{"a": [1e999, ' + "9" * 101 + '], "b": 1, "b": 2}', keep_repeated=True, keep_numbers=True)

    assert ("{'a': [inf, inf], 'b': 2}", ("b",)) == (str(value), repeated_keys(value))


@given(st.binary(max_size=200) | st.text(alphabet='{}[]",:\\u0dDeE1.-+ntrfals ', max_size=60).map(str.encode))
def test_any_bytes(body):
    """Any bytes give the value of the standard library or `InvalidJson`."""
    try:
        value = loads(body, keep_repeated=True)
    except InvalidJson:
        return
    assert value == json.loads(body.decode("utf-8-sig"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_any_value(value):
    """JSON that the standard library writes is read back unchanged."""
    assert value == loads(json.dumps(value).encode())


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=6))
def test_repeated_keys_are_known(pairs):
    """An object says which of its keys were given more than once, and holds the last value of each."""
    body = "{" + ",".join(f'"{key}":{value}' for key, value in pairs) + "}"
    value, keys = loads(body.encode(), keep_repeated=True), [key for key, _ in pairs]

    assert dict(pairs) == value
    assert {key for key in keys if keys.count(key) > 1} == {*repeated_keys(value)}


def test_many_repeated_keys_take_no_time():
    """A large object of one key is read in one pass."""
    body = b'{"a":0' + b',"a":0' * 9_000 + b"}"

    assert ("a",) == repeated_keys(loads(body, keep_repeated=True))


def test_texts():
    """Half a surrogate pair cannot be written as UTF-8."""
    assert [True, False] == [is_utf8("a😀"), is_utf8("\ud800")]


@pytest.mark.parametrize(
    "body",
    [
        b'{"results":[' + b",".join([b'{"text":"a","id":"b"}'] * 99_000) + b"]}",
        b'{"results":[' + b",".join([b'{"text":"a","id":"b"}'] * 7_000) + b"]}",
        b"[" + b",".join([b"1"] * (MOST_MARKS + 2)) + b"]",
        b"[" * (DEEPEST + 1) + b"]" * (DEEPEST + 1),
        b'["' + b"\\\\" * 3 + b'",' + b"[" * DEEPEST + b"]" * DEEPEST + b"]",
        b'["\\""' + b",[" * DEEPEST + b"]" * DEEPEST + b"]",
        b"]" * 30_000 + b"[" * 200 + b"]",
        b'"' + b"[" * 200,
        b"\\" * 1001 + b'"' + b"[" * 200,
    ],
)
def test_too_much_structure_is_not_parsed(body):
    """A body with too much structure, too much depth or no JSON is refused."""
    with pytest.raises(InvalidJson):
        loads(body, **LIMITS)


@pytest.mark.parametrize(
    "body",
    [
        b'["' + b"[{:," * 30_000 + b'"]',
        b'["' + b'\\"[' * 30_000 + b'\\\\"]',
        b"[" * DEEPEST + b"]" * DEEPEST,
        b"[" + b",".join([b"[]"] * 9_000) + b"]",
    ],
)
def test_what_is_in_texts_is_no_structure(body):
    """Brackets, commas and colons in strings are no structure, also after escaped quotes."""
    assert json.loads(body) == loads(body, **LIMITS)


@pytest.mark.parametrize("body", [b"[" * 30_000 + b"]" * 30_000, b'{"a":' * 9_000 + b"1" + b"}" * 9_000])
def test_the_parser_never_sees_what_is_too_deep(body, monkeypatch):
    """Nesting is refused before parsing, so that neither a high limit of recursion nor a small stack ends the process."""
    monkeypatch.setattr(strict_json.json, "loads", lambda *_, **__: pytest.fail("it was parsed"))
    with pytest.raises(InvalidJson):
        loads(body, **LIMITS)
