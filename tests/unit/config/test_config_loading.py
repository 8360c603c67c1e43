"""Finding a configuration, and trusting it."""

import errno
import json
import os
import stat
from pathlib import Path

import pytest

from beaver_hooks.config import (
    Config,
    ConfigLocation,
    LoadedConfig,
    Summary,
    find_config,
    forget_trust,
    is_trusted,
    load_config,
    parse_config,
    trust_config,
)
from beaver_hooks.config.trust import change_record, read_record, record_path
from beaver_hostspecs import ConfigurationError, ConfigurationNotTrusted


@pytest.fixture
def environment(tmp_path):
    return {"XDG_STATE_HOME": str(tmp_path / "state")}


@pytest.fixture
def cwd(tmp_path):
    folder = tmp_path / "project"
    (folder / ".beaver").mkdir(parents=True)
    return folder


@pytest.fixture
def config(cwd):
    path = cwd / ".beaver" / "config.json"
    path.write_text('{"host": {"queueLimit": 5}, "plugins": {"tally": {"url": "https://a.example"}}}')
    return path


def refusal(call, *arguments, **options) -> str:
    with pytest.raises(ConfigurationError) as caught:
        call(*arguments, **options)
    return str(caught.value)


def test_order_of_places(cwd, config, tmp_path):
    """The caller's file comes before the environment's, and that before the folder's; relative to the folder."""
    for name in ("a.json", "b.json"):
        (cwd / name).write_text("{}")

    assert find_config(Path("a.json"), {"BEAVER_CONFIG": "b.json"}, cwd) == ConfigLocation(
        path=cwd / "a.json", given=True
    )
    assert find_config(None, {"BEAVER_CONFIG": "b.json"}, cwd) == ConfigLocation(path=cwd / "b.json", given=True)
    assert find_config(None, {"BEAVER_CONFIG": ""}, cwd) == ConfigLocation(path=config, given=False)
    assert find_config(None, {}, tmp_path) is None


def test_given_files_must_exist(cwd, config):
    """A missing named file is an error, and the loader takes no other file instead."""
    assert refusal(find_config, cwd / "x", {}, cwd) == (
        f"the configuration file {cwd}/x does not exist; create it or correct the path"
    )
    assert refusal(find_config, None, {"BEAVER_CONFIG": "x"}, cwd) == (
        f"BEAVER_CONFIG names {cwd}/x, which does not exist; correct the path"
    )


def test_what_cannot_be_looked_into_is_not_absent(cwd):
    """A folder that cannot be searched is an error; defaults would be taken without a word."""
    (cwd / "loop").symlink_to("loop")

    assert refusal(find_config, None, {}, cwd / "loop") == (
        f"cannot look for {cwd}/loop/.beaver; check the path and the permissions of its folders"
    )


def test_defaults_without_a_file(tmp_path, environment):
    """Without any file the defaults are in effect, and state is the user's own."""
    given = {**environment, "HOME": str(tmp_path / "home")}
    assert load_config(environment=given, cwd=tmp_path) == LoadedConfig(
        config=Config(), path=None, trusted_by=None, state_folder=tmp_path / "home" / ".beaver"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"host": {"queuelimit": 5}}', "host.queuelimit: is not a setting (did you mean `queueLimit`?)"),
        ("{,}", "the configuration is not valid JSON (there is a trailing comma, line 1, column 2)"),
    ],
)
def test_errors_name_the_file(cwd, config, environment, text, expected):
    """An error names the faulty file, whether the loader found it or the caller named it."""
    config.write_text(text)

    assert refusal(load_config, environment=environment, cwd=cwd) == f"{expected} (in {config})"
    assert refusal(load_config, config, environment=environment, cwd=cwd) == f"{expected} (in {config})"


def test_trust_in_a_file_that_is_no_json(config, environment):
    """A file that is no configuration cannot be confirmed, and the error names it."""
    config.write_text("[]")

    assert refusal(trust_config, config, environment=environment) == (
        f"the configuration must be a JSON object (in {config})"
    )


def test_defaults_of_the_process(cwd, config, monkeypatch):
    """Environment and folder are the process's by default."""
    monkeypatch.chdir(cwd)
    monkeypatch.setenv("BEAVER_CONFIG", str(config))

    assert load_config().path == config


def test_given_is_trusted(cwd, config, environment):
    """A file that the caller names takes effect without a question and without a record."""
    loaded = load_config(config, environment=environment, cwd=cwd)

    assert (loaded.path, loaded.trusted_by, loaded.config.host.queue_limit) == (config, "given", 5)
    assert not record_path(environment).exists()


def test_found_is_not_trusted(cwd, config, environment):
    """A file that the loader finds by itself is refused with the remedy."""
    with pytest.raises(ConfigurationNotTrusted) as caught:
        load_config(environment=environment, cwd=cwd)

    assert str(caught.value) == (
        f"the configuration {config} was found here and is not confirmed; review it with `beaver trust`, or name it with --config or BEAVER_CONFIG"
    )


def test_confirmation_is_asked_once(cwd, config, environment):
    """The loader records one confirmation after showing the summary, and does not ask again."""
    asked = []

    def confirm(summary: Summary) -> bool:
        asked.append((summary.path, summary.changed, [str(each) for each in summary.entries]))
        return True

    first = load_config(environment=environment, cwd=cwd, confirm=confirm)
    second = load_config(environment=environment, cwd=cwd)

    assert first == second
    assert first.trusted_by == "confirmed"
    assert asked == [(config, False, ["host.queueLimit: 5", "plugins.tally.url: address a.example"])]


def test_declined(cwd, config, environment):
    """A declined configuration stays untrusted."""
    with pytest.raises(ConfigurationNotTrusted):
        load_config(environment=environment, cwd=cwd, confirm=lambda _: False)

    assert is_trusted(config, environment=environment) is False


def test_trust_and_forget(cwd, config, environment):
    """A confirmation can be given and taken back by call, also through a link."""
    (cwd / "link").symlink_to(config)
    trust_config(cwd / "link", environment=environment)

    assert is_trusted(config, environment=environment) is True
    assert load_config(environment=environment, cwd=cwd).trusted_by == "confirmed"
    assert forget_trust(config, environment=environment) is True
    assert forget_trust(config, environment=environment) is False
    assert is_trusted(config, environment=environment) is False


@pytest.mark.parametrize(
    ("text", "trusted"),
    [
        ('{"plugins": {"a": {"n": 6.5, "u": "x", "b": true, "l": [2, "y"]}}}', True),
        ('{"plugins": {"a": {"b": true, "l": [1, "y"], "u": "x", "n": 5}}}', True),
        ('{"plugins": {"a": {"n": 5, "u": "z", "b": true, "l": [1, "y"]}}}', False),
        ('{"plugins": {"a": {"n": 5, "u": "x", "b": false, "l": [1, "y"]}}}', False),
        ('{"plugins": {"a": {"n": 5, "u": "x", "b": true, "l": ["y", 1]}}}', False),
        ('{"plugins": {"a": {"n": "5", "u": "x", "b": true, "l": [1, "y"]}}}', False),
        ('{"plugins": {"a": {"n": null, "u": "x", "b": true, "l": [1, "y"]}}}', False),
        ('{"plugins": {"a": {"n": 5, "u": "x", "b": true, "l": [1, "y"]}, "c": {}}}', False),
    ],
)
def test_what_asks_again(cwd, config, environment, text, trusted):
    """A changed number or order of keys needs no new confirmation; any other change does, and the error names it."""
    config.write_text('{"plugins": {"a": {"n": 5, "u": "x", "b": true, "l": [1, "y"]}}}')
    trust_config(config, environment=environment)
    config.write_text(text)

    assert is_trusted(config, environment=environment) is trusted
    if not trusted:
        assert "was changed after it was confirmed" in refusal(load_config, environment=environment, cwd=cwd)


def test_what_was_confirmed_takes_effect(cwd, config, environment):
    """A file that is changed while the question is open does not take effect, and its change is not trusted."""

    def confirm(_: Summary) -> bool:
        config.write_text('{"memory": {"mode": "curated"}}')
        return True

    loaded = load_config(environment=environment, cwd=cwd, confirm=confirm)

    assert loaded.config.host.queue_limit == 5
    assert is_trusted(config, environment=environment) is False


@pytest.mark.parametrize(("given", "expected"), [("null", ".beaver"), ('"s"', ".beaver/s"), ('"/s"', "/s")])
def test_state_folder(cwd, config, environment, given, expected):
    """The state folder is relative to the file; by default it is the `.beaver` that the file lies in."""
    config.write_text(f'{{"host": {{"stateFolder": {given}}}}}')

    assert load_config(config, environment=environment, cwd=cwd).state_folder == cwd / expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("mine/.beaver/c.json", "mine/.beaver"), ("mine/c.json", "mine/.beaver"), (".beaver/x/../c.json", ".beaver")],
)
def test_state_folder_of_a_named_file(tmp_path, environment, name, expected):
    """A named file has its own state whatever the working directory: in its `.beaver`, or in the one beside it."""
    path = tmp_path / name
    (path.parent if ".." not in name else tmp_path / ".beaver" / "x").mkdir(parents=True)
    path.write_text("{}")
    by_variable = {**environment, "BEAVER_CONFIG": str(path)}
    loaded = load_config(path, environment=environment), load_config(environment=by_variable, cwd=tmp_path / "x")

    assert [each.state_folder for each in loaded] == [tmp_path / expected] * 2


def test_record_is_private(config, environment):
    """The record and its folder are for the owner alone, and no temporary file stays, not even a stray one."""
    folder = record_path(environment).parent
    folder.mkdir(parents=True, mode=0o700)
    (folder / ".trusted.json.1.tmp").write_text("")
    trust_config(config, environment=environment)

    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in [folder, *folder.rglob("*")]}
    (version,) = (folder / "confirmed").iterdir()
    files = {"trusted.json": 0o600, "trusted.json.lock": 0o600, version.name: 0o600}
    assert modes == {"beaver-hooks": 0o700, "confirmed": 0o700, **files}


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": 2, "trusted": {}}', '{"version": 1, "trusted": {"a": 1}}']
)
def test_unreadable_record(cwd, config, environment, text):
    """A record that cannot be read trusts nothing, and is not overwritten."""
    path = record_path(environment)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    expected = f"the record {path} cannot be read, so nothing is trusted; repair it or move it away"

    assert refusal(load_config, environment=environment, cwd=cwd, confirm=lambda _: True) == expected
    assert refusal(trust_config, config, environment=environment) == expected
    assert path.read_text() == text


def test_record_that_cannot_be_written(config, tmp_path):
    """A state folder that cannot be made is an error with a remedy."""
    (tmp_path / "file").write_text("")

    assert refusal(trust_config, config, environment={"XDG_STATE_HOME": str(tmp_path / "file")}) == (
        f"the record {tmp_path}/file/beaver-hooks/trusted.json cannot be written (Not a directory); check the permissions of its folder, or set XDG_STATE_HOME"
    )


def no_locks(*_):
    raise OSError(errno.ENOSYS, "Function not implemented")


def test_without_file_locks(config, environment, monkeypatch):
    """Without file locks the error tells the user to name the file in BEAVER_CONFIG."""
    monkeypatch.setattr("fcntl.flock", no_locks)

    assert refusal(trust_config, config, environment=environment) == (
        "a confirmation needs file locks, which this system lacks; name the file in BEAVER_CONFIG instead"
    )


def test_where_the_record_is():
    """XDG's rules: a relative path is ignored, and the default is below the home folder."""
    end = "beaver-hooks/trusted.json"

    assert record_path({"XDG_STATE_HOME": "/s"}) == Path("/s") / end
    assert record_path({"XDG_STATE_HOME": "s", "HOME": "/h"}) == Path("/h/.local/state") / end
    assert record_path({}) == Path.home() / ".local/state" / end


def test_trust_uses_the_process_environment(config, environment, monkeypatch):
    """Without a given environment, the process environment decides where the record is."""
    monkeypatch.setenv("XDG_STATE_HOME", environment["XDG_STATE_HOME"])
    trust_config(config)

    assert list(read_record(record_path(environment))) == [os.path.realpath(config)]


def test_a_failed_change_keeps_the_record(environment):
    """A change that raises leaves the record and the lock as they were."""
    path = record_path(environment)
    change_record(path, lambda fingerprints: fingerprints.update(a="1"))
    with pytest.raises(ZeroDivisionError):
        change_record(path, lambda _: 1 / 0)
    change_record(path, lambda fingerprints: fingerprints.update(b="2"))

    assert json.loads(path.read_text()) == {"version": 1, "trusted": {"a": "1", "b": "2"}}


def test_summary_shows_no_credential(cwd, config, environment):
    """Hosts, variables and programs are shown; users, paths, arguments and texts are not."""
    config.write_text(json.dumps({
        "$schema": "https://canary.example",
        "plugins": {"a": {
            "url": "https://user:canary@a.example:8080/canary?key=canary", "baseUrl": "b.example/canary",
            "host": "[::1]:5", "wrong": "http://[canary", "odd": "http://\x1bcanary", "apiKey": "canary",
            "key": {"env": "A_KEY"}, "odder": {"env": "sk_canary"}, "command": "tool --token canary",
            "program": ["/bin/sh", "canary"], "executable": "T=canary tool", "exec": [None, False, 1],
            "emptyCommand": "",
        }},
    }))  # fmt: skip
    shown = []
    with pytest.raises(ConfigurationNotTrusted):
        load_config(environment=environment, cwd=cwd, confirm=lambda summary: shown.append(str(summary)))

    prefix = "  plugins.a."
    assert shown[0].splitlines() == [
        str(config),
        f"{prefix}url: address a.example:8080",
        f"{prefix}baseUrl: address b.example",
        f"{prefix}host: address [::1]:5",
        f"{prefix}wrong: address",
        f"{prefix}odd: address",
        f"{prefix}apiKey: secret",
        f"{prefix}key: environment variable A_KEY",
        f"{prefix}odder: environment variable",
        f"{prefix}command: program tool",
        f"{prefix}program[0]: program /bin/sh",
        f"{prefix}program[1]: text",
        f"{prefix}executable: program",
        f"{prefix}exec[0]: null",
        f"{prefix}exec[1]: false",
        f"{prefix}exec[2]: 1",
        f"{prefix}emptyCommand: program",
    ]


def test_loading_is_reading(cwd, config, environment):
    """The loaded configuration equals the parsed text of the file."""
    loaded = load_config(config, environment=environment, cwd=cwd)

    assert loaded.config == parse_config(config.read_bytes())
