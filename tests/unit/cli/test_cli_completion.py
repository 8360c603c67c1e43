"""`beaver completion`."""

import os
import shutil
import subprocess
import sys

import pytest


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts(cli, monkeypatch, shell):
    """Each supported shell gets a script for `beaver`, by its name or from the variable SHELL."""
    named = cli("completion", shell)
    monkeypatch.setenv("SHELL", f"/usr/local/bin/{shell}")
    own = cli("completion")

    assert (0, own.out) == (named.code, named.out)
    assert f"_BEAVER_COMPLETE={shell}_complete" in named.out


def test_unknown_shell(cli, monkeypatch):
    """An unsupported shell in SHELL is an error that lists the supported ones."""
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    ran = cli("completion")

    assert (2, "") == (ran.code, ran.out)
    assert ran.err.endswith("Error: The variable SHELL does not name a supported shell; choose one: bash, zsh, fish.\n")


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes(cli, tmp_path):
    """A real bash that has read the script completes commands and their options, and no plugin is imported."""
    (tmp_path / "script").write_text(cli("completion", "bash").out)
    program = tmp_path / "beaver"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -v -m beaver_hooks.cli "$@" 2>>"{tmp_path}/imports"\n')
    program.chmod(0o700)
    script = (
        'source "$1/script"; PATH=$1:$PATH\n'
        "COMP_WORDS=(beaver se) COMP_CWORD=1; _beaver_completion beaver; echo ${COMPREPLY[@]}; COMPREPLY=()\n"
        "COMP_WORDS=(beaver doctor --js) COMP_CWORD=2; _beaver_completion beaver; echo ${COMPREPLY[@]}\n"
    )
    ran = subprocess.run(
        ["bash", "--norc", "-c", script, "bash", str(tmp_path)],
        capture_output=True, text=True, check=True, env=os.environ | {"HOME": str(tmp_path)},
    )  # fmt: skip

    assert ["sessions", "--json"] == ran.stdout.split()
    imports = (tmp_path / "imports").read_text()
    assert "import 'beaver_hooks.cli.doctor'" in imports
    assert "import 'beaver_hooks_curated'" not in imports
