"""Files of a release are never replaced unasked, and are listed with their checksums."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from release import command
from release.command import check_tree
from release.folder import put, write_sums
from release.tools import ReleaseError, run


def folder_of(path: Path, **files: str) -> Path:
    path.mkdir()
    for name, text in files.items():
        (path / name).write_text(text)
    return path


def texts_in(path: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in path.iterdir()}


def test_a_release_is_put_where_there_is_none(tmp_path: Path) -> None:
    put(folder_of(tmp_path / "built", wheel="1"), tmp_path / "dist" / "flame-1", replace=False)
    assert texts_in(tmp_path / "dist" / "flame-1") == {"wheel": "1"}


def test_the_same_again_is_no_change(tmp_path: Path) -> None:
    there = folder_of(tmp_path / "there", wheel="1")
    put(folder_of(tmp_path / "built", wheel="1"), there, replace=False)
    assert texts_in(there) == {"wheel": "1"}


@pytest.mark.parametrize("files", [{"wheel": "2", "sdist": "1"}, {"wheel": "1"}])
def test_what_differs_is_replaced_only_where_that_is_said(
    files: dict[str, str], tmp_path: Path
) -> None:
    there = folder_of(tmp_path / "there", wheel="1", sdist="1")
    built = folder_of(tmp_path / "built", **files)
    with pytest.raises(ReleaseError, match="other files of this version"):
        put(built, there, replace=False)
    assert texts_in(there) == {"wheel": "1", "sdist": "1"}
    put(built, there, replace=True)
    assert texts_in(there) == files
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


@pytest.mark.skipif(not shutil.which("sha256sum"), reason="no sha256sum")
def test_checksums_are_those_of_sha256sum(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "there", wheel="1", sdist="2")
    sums = write_sums(folder)
    command = ["sha256sum", "--check", "--strict", sums.name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.stdout == "sdist: OK\nwheel: OK\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A checkout with one file, which is committed."""
    if not shutil.which("git"):
        pytest.skip("no git")
    (tmp_path / "file").write_text("1")
    name = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    for words in (("init", "--quiet"), ("add", "file"), (*name, "commit", "-qm", "Add a file")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


def test_a_tree_as_it_was_committed_is_named_by_its_commit(repository: Path) -> None:
    assert len(check_tree(repository)) == 40


@pytest.mark.parametrize("name", ["file", "another"])
def test_a_tree_with_changes_is_refused_and_nothing_built(
    name: str,
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (repository / name).write_text("2")
    monkeypatch.setattr(command, "ROOT", repository)
    monkeypatch.setattr(command, "make_files", pytest.fail)
    assert command.main([]) == 1
    assert capsys.readouterr() == ("", f"error: not committed: {name}\n")


def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(ReleaseError, match=r"^/nonexistent/git: no such program$"):
        run("/nonexistent/git")
