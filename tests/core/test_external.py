"""Programs: not looked for in the current folder; none is left behind, however early stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from flame.core import external
from flame.core.external import find_program, import_path, package_folders, start_group
from tests.support.paths import ROOT
from tests.support.waiting import wait_until


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_program_starts_ends_it(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def interrupted(*command: Any, **how: Any) -> subprocess.Popen[bytes]:
        started.append(start(*command, **how))
        os.kill(os.getpid(), number)
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", interrupted)
    before = signal.signal(number, signal.default_int_handler)
    try:
        with (
            tempfile.TemporaryFile() as output,
            pytest.raises(KeyboardInterrupt),
            start_group(["sleep", "1000"], output, output),
        ):
            pytest.fail("was not interrupted")
    finally:
        assert signal.signal(number, before) is signal.default_int_handler
    wait_until(lambda: started[0].poll() is not None)
    assert started[0].returncode == -signal.SIGKILL


def test_the_program_of_a_block_that_is_left_is_ended() -> None:
    with tempfile.TemporaryFile() as output:
        with start_group(["sleep", "1000"], output, output) as process:
            assert process.poll() is None
        assert process.returncode == -signal.SIGKILL


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a program in it."""
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    monkeypatch.chdir(tmp_path)
    return program


@pytest.mark.parametrize("path", ["", ":", ".", ":/none", "/none:", "./", "bin:..", "../here"])
def test_a_program_of_the_current_folder_is_not_found(
    here: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setenv("PATH", path)
    assert find_program("tool") is None


def test_a_program_on_path_is_found(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f":/none:{here.parent}")
    assert find_program("tool") == str(here)


def test_a_child_imports_from_absolute_folders_and_knows_flame(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "path", ["", ".", "lib", "/lib"])
    assert import_path() == ["/lib", str(ROOT)]
    monkeypatch.setattr(sys, "path", [str(ROOT), ""])
    assert import_path() == [str(ROOT)]


def test_packages_are_where_pip_puts_them(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["", str(here.parent), *sys.path])
    folders = package_folders()
    assert Path(pytest.__file__).parents[1] in folders
    assert external.HOME in folders
    assert here.parent not in folders
    assert all(folder.is_absolute() for folder in folders)
