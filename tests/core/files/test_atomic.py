"""Files appear whole or not at all."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from flame.core.errors import InputError
from flame.core.files.atomic import atomic_output, private_output
from tests.core.files.written_files import names, needs_root, put
from tests.support.waiting import PATIENCE

not_as_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


def test_the_file_is_there_after_the_block(tmp_path: Path) -> None:
    with atomic_output(str(tmp_path / "out")) as file:
        file.write(b"new")
        assert "out" not in names(tmp_path)
    assert names(tmp_path) == ["out"]
    assert (tmp_path / "out").read_bytes() == b"new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, BrokenPipeError])
def test_a_failure_leaves_what_was_there(error: type[BaseException], tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"old")
    with pytest.raises(error), atomic_output(str(tmp_path / "out")) as file:
        file.write(b"new")
        raise error
    assert names(tmp_path) == ["out"]
    assert (tmp_path / "out").read_bytes() == b"old"


def test_a_failure_leaves_nothing_where_nothing_was(tmp_path: Path) -> None:
    full = OSError(28, "No space left on device")
    complaint = f"out: cannot be written: {full.strerror}"
    with pytest.raises(InputError, match=complaint), atomic_output(str(tmp_path / "out")):
        raise full
    assert names(tmp_path) == []


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    put(tmp_path / "out")
    (tmp_path / "any").touch()
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "any").stat().st_mode


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "out").touch(0o640)
    (tmp_path / "out").chmod(0o640)
    put(tmp_path / "out")
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o640


def test_a_temporary_file_is_never_more_open_than_what_it_replaces(tmp_path: Path) -> None:
    (tmp_path / "out").touch(0o600)
    with atomic_output(str(tmp_path / "out")) as file:
        assert modes(tmp_path) == {0o600}
        file.write(b"secret")
        file.flush()
        assert modes(tmp_path) == {0o600}


def modes(folder: Path) -> set[int]:
    return {path.stat().st_mode & 0o777 for path in folder.iterdir()}


@needs_root
def test_the_group_is_kept_where_that_can_be(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    os.chown(tmp_path / "out", 0, 7)
    (tmp_path / "out").chmod(0o640)
    put(tmp_path / "out")
    known = (tmp_path / "out").stat()
    assert (known.st_gid, known.st_mode & 0o777) == (7, 0o640)


# On disk before it has its name


@pytest.mark.parametrize("replace", [True, False])
def test_the_file_is_on_disk_before_it_has_its_name_and_the_folder_after(
    replace: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log: list[str] = []
    sync = os.fsync

    def fsync(descriptor: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        named = (tmp_path / "out").exists()
        log.append(f"{'folder' if is_folder else 'file'} {'named' if named else 'unnamed'}")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with atomic_output(str(tmp_path / "out"), replace=replace) as file:
        file.write(b"new")
    assert log == ["file unnamed", "folder named"]


# Killed, and in the user's own folders


KILLED = """
import os, signal, sys
from pathlib import Path
from flame.core.files.atomic import private_output
with private_output(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, path], timeout=PATIENCE, check=False)
    assert done.returncode == -signal.SIGKILL


def test_a_killed_flame_leaves_a_file_that_a_later_one_removes(tmp_path: Path) -> None:
    target = tmp_path / "state" / "file"
    killed(target)
    [left] = target.parent.iterdir()
    assert re.fullmatch(r"\.flame-[0-9a-f]{16}\.tmp", left.name)
    assert left.stat().st_mode & 0o777 == 0o600
    with private_output(target) as file:
        file.write(b"new")
    assert left.exists(), "it may be somebody's who has just begun"
    os.utime(left, (0, 0))
    with private_output(target) as file:
        file.write(b"new")
    assert names(target.parent) == ["file"]
    assert modes(tmp_path) == {0o700}
    assert modes(target.parent) == {0o600}


def test_a_temporary_file_that_is_still_written_stays(tmp_path: Path) -> None:
    with private_output(tmp_path / "one") as file:
        file.write(b"one")
        [held] = tmp_path.iterdir()
        os.utime(held, (0, 0))
        with private_output(tmp_path / "two") as other:
            other.write(b"two")
    assert names(tmp_path) == ["one", "two"]


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/out")
    put(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "out").read_bytes() == b"new"


def test_a_name_may_be_as_long_as_the_file_system_allows(tmp_path: Path) -> None:
    put(tmp_path / ("x" * 255))
    assert names(tmp_path) == ["x" * 255]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "Is a directory"),
        ("missing/", "Is a directory"),
        ("missing/out", "No such file or directory"),
        ("file/out", "Not a directory"),
        ("x" * 256, "File name too long"),
    ],
)
def test_what_cannot_be_written_is_said_in_one_line(name: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError) as caught:
        put(f"{tmp_path}/{name}")
    assert str(caught.value) == f"{tmp_path}/{name}: cannot be written: {reason}"
    assert caught.value.exit_code == 3
    assert names(tmp_path) == ["file"]


@not_as_root
def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "out").touch(0o444)
    with pytest.raises(InputError, match="Permission denied"):
        put(tmp_path / "out")


@not_as_root
def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    with pytest.raises(InputError, match="Permission denied"):
        put(tmp_path / "out")
