"""The chats of BEAM in the form of the other sets. The folder that `BEAVER_BENCH_DATA` names holds them."""

import hashlib
import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

from kit_data import Case, Item, Question

FILE = "beam-dev.json"


def beam() -> tuple[tuple[Case, ...], str] | None:
    """Return the chats and the file's hash, or `None`, with a printed line, if the file is missing."""
    folder = os.environ.get("BEAVER_BENCH_DATA", "")
    path = Path(folder) / FILE
    if not folder or not path.is_file():
        print(f"BEAM is left out: BEAVER_BENCH_DATA names no folder with {FILE}.")
        return None
    raw = path.read_bytes()
    return tuple(_chat(each) for each in json.loads(raw)), hashlib.sha256(raw).hexdigest()


def _chat(entry: dict[str, Any]) -> Case:
    items = tuple(
        Item(
            key=each["id"],
            text=each["text"],
            session=each["session"],
            speaker=each["role"],
            when=datetime.fromisoformat(each["when"]),
        )
        for each in entry["messages"]
    )
    questions = tuple(
        Question(text=each["question"], evidence=tuple(each["evidence"]))
        for each in entry["questions"]
        if each["evidence"]
    )
    return Case(name=f"chat-{entry['id']}", items=items, questions=questions)
