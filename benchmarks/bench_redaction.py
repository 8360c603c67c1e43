"""Measures redaction: its cost on ordinary and on hostile text, its false alarms, and the formats that it finds.

Ordinary texts are the documentation and the sources of this repository (without its tests and this module), the
standard library of this interpreter without its tests, and the conversations of LoCoMo and BEAM where
`BEAVER_BENCH_DATA` names their folder. The cost is that of pieces of 1 KB, the best of four runs of each; conversations
are joined to such pieces. A false alarm is each finding in an ordinary text, whatever it is.

The formats are those of `credentials/seen.jsonl`, on which the rules were written, and of three lists that were each
written without sight of the rules, measured once, and then used to improve them: `foreign`, `fresh` and `third`. Their
first figures are in decision 0074; the next figure for unseen formats needs another list. A credential counts as
found if no part of it that is longer than its half is left.
"""

import json
import os
import random
import statistics
import string
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kit_credentials import Credential, credentials, is_gone, plain

from beaver_toolkit.redaction.redactor import Redactor

MEDIAN_TARGET = 25.0
HOSTILE_TARGET = 0.020
ALARMS_TARGET = 1.0
FOUND_TARGET = 0.95
KILOBYTE = 1024
REPEATS = 4
SIZE = 64 * KILOBYTE
ROOT = Path(__file__).parents[1]
CONVERSATIONS = ("locomo-dev.json", "beam-dev.json")
FOLDERS = ("beaver_hooks", "hostspecs", "toolkit", "memory", "plugins", "docs", "benchmarks", "examples", "tools")
HOSTILE = {
    "letters": "a", "digits": "4", "cards": "4111 1111 1111 1112 ", "accounts": "DE89 3704 0044 0532 0130 01 ",
    "assignments": "password=x1y2 ", "code": "token=abc.def(ghi1a2) ", "sentences": "my password is abcde and ",
    "remarks": "password is word ", "short": "pw: a1b2c3; ", "keys": "key=a1b2 ", "secrets": "secret: abcdefgh1a ",
    "marks": "ghp_ sk-ant- xoxb- AKIA npm_ ", "tokens": "ghp_" + "a1B2c3D4e5F6" * 3 + " ",
    "web tokens": "eyJaaaaaaaaaa.",
    "keys in PEM": "-----BEGIN PRIVATE KEY-----\n", "addresses": "a://b:", "passwords in addresses": "http://a:b@c ",
    "random words": "a1B2c3D4e5F6g7H8i9J0 ", "named random words": "token a1B2c3D4e5F6g7H8i9J0 ", "names": "user_id_1 ",
    "headers": "Authorization: Bearer abcdefgh ", "cookies": "cookie=a=a1a1a1 ", "Chinese": "密码是abcd ",
    "German": "das Passwort ist ", "quotes": 'password="', "quoted words": 'password="abcdef"',
    "emoji": "\U0001f469\u200d",
    "webhooks": "https://a/hook/", "masks": "password=[redacted: password]", "phrases": "seed phrase is aaa ",
    "hashes": "$2a$", "NUL": "\0", "base64": "QUJD", "bot tokens": "123456789:",
}  # fmt: skip
_MADE = ["password", "secret", "token", "key", " is ", "=", ":", "_", "a1", '"', "pw", "://", "@", "eyJ", "4111", "\n"]


def hostile() -> Iterator[tuple[str, str]]:
    """Yield hostile texts of 64 KB with their names."""
    for name, piece in HOSTILE.items():
        yield name, (piece * SIZE).encode()[:SIZE].decode("utf-8", "ignore")
    chance = random.Random(1)
    yield "random names", "".join(chance.choices(_MADE, k=SIZE))[:SIZE]
    yield "random words of rules", " ".join(chance.choices(_MADE, k=SIZE))[:SIZE]
    yield "random characters", "".join(chance.choices(string.printable, k=SIZE))
    yield "random base64", "".join(chance.choices(string.ascii_letters + string.digits + "+/", k=SIZE))


def ordinary() -> dict[str, list[str]]:
    """Return ordinary texts by their origin."""
    ours = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in {".md", ".py"}]
    library = Path(sysconfig.get_path("stdlib")).rglob("*.py")
    found = {
        "this repository": [
            read(each) for each in ours if "tests" not in each.parts and each.name != Path(__file__).name
        ],
        "standard library": [read(each) for each in library if not {"test", "tests", "site-packages"} & {*each.parts}],
    }
    data = os.environ.get("BEAVER_BENCH_DATA")
    for name in CONVERSATIONS if data else ():
        path = Path(str(data)) / name
        if path.exists():
            found[name] = ["\n".join(texts_of(json.loads(path.read_text("utf-8"))))]
    return found


def read(path: Path) -> str:
    """Return the text of a file."""
    return path.read_text("utf-8", "replace")


def texts_of(value: Any) -> Iterator[str]:
    """Yield the texts inside JSON data."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts_of(each)


def seconds(redactor: Redactor, text: str) -> float:
    """Return the processor time of one redaction."""
    started = time.process_time()
    redactor.redact(text)
    return time.process_time() - started


def cost(redactor: Redactor, texts: list[str]) -> float:
    """Return the median microseconds per KB over pieces of 1 KB."""
    pieces = [text[at : at + KILOBYTE] for text in texts for at in range(0, len(text) - KILOBYTE, KILOBYTE)]
    some = random.Random(1).sample(pieces, min(3_000, len(pieces)))
    best = (min(seconds(redactor, each) for _ in range(REPEATS)) / (len(each.encode()) / KILOBYTE) for each in some)
    return 1e6 * statistics.median(best)


def found(redactor: Redactor, formats: tuple[Credential, ...]) -> tuple[int, int, int, list[str]]:
    """Return the kinds that are found in all their texts, the hits, the number of texts, and the wrong ones."""
    kinds, hits, total, wrong = 0, 0, 0, list[str]()
    for each in formats:
        good = [is_gone(credential, redactor.redact(text).text) for text, credential in map(plain, each.texts)]
        kinds, hits, total = kinds + all(good), hits + sum(good), total + len(good)
        if not all(good):
            wrong.append(f"missed: {each.kind} ({good.count(False)} of {len(good)})")
        wrong += [f"false alarm: {each.kind}" for text in each.innocent if redactor.find(text)]
    return kinds, hits, total, wrong


def main() -> int:
    """Print the figures; return 1 if one misses its target."""
    redactor, good = Redactor(), True
    print("Ordinary text: median microseconds per KB (target 25), false alarms per MB (target 1)")
    alarms, size = 0, 0.0
    for name, texts in ordinary().items():
        median, megabytes = cost(redactor, texts), sum(len(each.encode("utf-8", "replace")) for each in texts) / 1e6
        here = sum(finding.count for each in texts for finding in redactor.find(each))
        alarms, size, good = alarms + here, size + megabytes, good and median <= MEDIAN_TARGET
        print(f"  {name:<24} {median:6.1f}   {here / megabytes:6.2f}  ({here} in {megabytes:.1f} MB)")
    good = good and alarms / size <= ALARMS_TARGET
    print(f"  {'together':<24} {'':6}   {alarms / size:6.2f}")
    times = sorted(
        ((statistics.median(seconds(redactor, text) for _ in range(5)), name) for name, text in hostile()), reverse=True
    )
    good = good and times[0][0] <= HOSTILE_TARGET
    print(
        f"Hostile text of 64 KB: at most {1e3 * times[0][0]:.1f} ms (target 20), by {times[0][1]}; then "
        + ", ".join(f"{name} {1e3 * took:.1f}" for took, name in times[1:6])
    )
    for name in ("seen", "foreign", "fresh", "third"):
        formats = credentials(name)
        kinds, hits, total, wrong = found(redactor, formats)
        good = good and hits / total >= FOUND_TARGET
        print(
            f"{name}: {100 * hits / total:.1f} % of {total} texts (target 95 %), "
            f"{kinds} of {len(formats)} kinds in all their texts"
        )
        for line in wrong:
            print(f"  {line}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
