"""Programs and packages: the current folder is none of the places where they are looked for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from flame.core import external as programs
from flame.core.external import find_program, import_path, package_folders
from tests.support.paths import ROOT


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
    assert programs.HOME in folders
    assert here.parent not in folders
    assert all(folder.is_absolute() for folder in folders)
