"""Files in folders of two users: nobody gets at those of another."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from flame.core.files.atomic import OccupiedError, atomic_output, private_output
from tests.core.files.written_files import WRITE, names, needs_root, occupy, put, umask
from tests.support.waiting import PATIENCE

OTHER, VICTIM = 64_001, 64_002
"""Users of no name."""


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """A folder as /tmp is, that another user can reach."""
    with TemporaryDirectory() as name:
        folder = Path(name) / "shared"
        Path(name).chmod(0o755)
        folder.mkdir()
        folder.chmod(0o1777)
        yield folder


@needs_root
def test_permissions_for_a_group_are_not_given_to_another(shared: Path) -> None:
    """Of a file whose group its owner is not in."""
    (shared / "out").touch()
    os.chown(shared / "out", OTHER, 7)
    (shared / "out").chmod(0o640)
    done = as_user(OTHER, shared / "out")
    assert done.returncode == 0, done.stderr
    known = (shared / "out").stat()
    assert (known.st_uid, known.st_gid, known.st_mode & 0o777) == (OTHER, OTHER, 0o600)


@needs_root
def test_what_is_somebody_elses_stays(tmp_path: Path) -> None:
    left = tmp_path / ".flame-0123456789abcdef.tmp"
    left.touch()
    os.chown(left, OTHER, OTHER)
    os.utime(left, (0, 0))
    link = tmp_path / ".flame-0123456789abcdee.tmp"
    link.symlink_to(tmp_path / "precious")
    (tmp_path / "precious").touch()
    os.utime(link, (0, 0), follow_symlinks=False)
    with private_output(tmp_path / "new"):
        pass
    assert left.exists() and link.is_symlink() and (tmp_path / "precious").exists()


@needs_root
@pytest.mark.parametrize("victim", [0, VICTIM])
@pytest.mark.parametrize("kind", ["file", "link", "pipe"])
def test_what_another_user_has_planted_is_not_written_to(
    kind: str, victim: int, shared: Path
) -> None:
    precious = shared.parent / "precious"
    precious.write_text("old")
    os.chown(precious, victim, victim)
    planted = shared / "out"
    if kind == "link":
        planted.symlink_to(precious)
    else:
        occupy(planted, kind)
        planted.chmod(0o666)
    os.chown(planted, OTHER, OTHER, follow_symlinks=False)
    done = as_user(victim, planted)
    assert done.returncode == 1
    reason = "another user has made it, in a folder that everybody may write to"
    assert f"{planted}: cannot be written: {reason}" in done.stderr
    assert precious.read_text() == "old"
    assert names(shared) == ["out"]


@needs_root
def test_ones_own_link_in_such_a_folder_is_followed(shared: Path) -> None:
    (shared / "mine").symlink_to("file")
    put(shared / "mine")
    assert (shared / "mine").is_symlink()
    assert (shared / "file").read_bytes() == b"new"


@needs_root
def test_a_name_that_another_user_takes_meanwhile_is_left_to_them(shared: Path) -> None:
    with pytest.raises(OccupiedError), atomic_output(str(shared / "out"), replace=False) as file:
        file.write(b"secret")
        (shared / "out").touch(0o666)
        os.chown(shared / "out", OTHER, OTHER)
    assert (shared / "out").read_bytes() == b""


@needs_root
def test_who_runs_as_root_gives_nobody_what_they_export(shared: Path) -> None:
    """Of a file that another user has let everybody write to, in a folder of their own."""
    home = shared.parent / "home"
    home.mkdir()
    (home / "out").touch()
    (home / "out").chmod(0o666)
    for path in (home, home / "out"):
        os.chown(path, OTHER, OTHER)
    put(home / "out")
    known = (home / "out").stat()
    assert (known.st_uid, known.st_mode & 0o777) == (0, 0o666 & ~umask())


# Other users may not even start this Python.
AS_USER = """
import os, sys
import flame.core.files.atomic
os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
"""


def as_user(user: int, target: Path) -> subprocess.CompletedProcess[str]:
    """Write ``target`` as another user does."""
    command = [sys.executable, "-c", AS_USER + WRITE, str(target), str(user)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
