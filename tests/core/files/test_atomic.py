"""Files appear whole or not at all; what is no plain file is written to as it is."""

from __future__ import annotations

import errno
import os
import re
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from flame.core.errors import InputError
from flame.core.files.atomic import OccupiedError, atomic_output, private_output
from tests.support.waiting import PATIENCE

not_as_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
OTHER, VICTIM = 64_001, 64_002
"""Users of no name."""


def put(path: str | Path, data: bytes = b"new") -> None:
    with atomic_output(str(path)) as file:
        file.write(data)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


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
def test_the_group_is_kept_where_that_can_be(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    os.chown(tmp_path / "out", 0, 7)
    (tmp_path / "out").chmod(0o640)
    put(tmp_path / "out")
    known = (tmp_path / "out").stat()
    assert (known.st_gid, known.st_mode & 0o777) == (7, 0o640)


# Not replaced without being told


def put_new(path: Path) -> None:
    with atomic_output(str(path), replace=False) as file:
        file.write(b"new")


def test_without_replacing_a_file_is_written_as_any(tmp_path: Path) -> None:
    put_new(tmp_path / "out")
    (tmp_path / "any").touch()
    assert names(tmp_path) == ["any", "out"]
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "any").stat().st_mode
    assert (tmp_path / "out").read_bytes() == b"new"


@pytest.mark.parametrize("kind", ["file", "folder", "link", "pipe"])
def test_what_is_there_is_not_replaced(kind: str, tmp_path: Path) -> None:
    occupy(tmp_path / "out", kind)
    before = (tmp_path / "out").lstat()
    with pytest.raises(OccupiedError, match="out: is there already"):
        put_new(tmp_path / "out")
    assert (tmp_path / "out").lstat() == before
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("kind", ["file", "folder", "link", "pipe"])
def test_what_appears_meanwhile_is_not_replaced(
    kind: str, links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not links:
        without_links(monkeypatch)
    with (
        pytest.raises(OccupiedError, match="out: is there already"),
        atomic_output(str(tmp_path / "out"), replace=False) as file,
    ):
        file.write(b"new")
        occupy(tmp_path / "out", kind)
        before = (tmp_path / "out").lstat()
    assert (tmp_path / "out").lstat() == before
    assert names(tmp_path) == ["out"]


def occupy(path: Path, kind: str) -> None:
    if kind == "file":
        path.write_text("old")
    elif kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to("nowhere")
    else:
        os.mkfifo(path)


def without_links(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the file system be one that has no hard links, as vfat."""

    def link(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", link)


def test_a_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_links(monkeypatch)
    put_new(tmp_path / "out")
    assert names(tmp_path) == ["out"]
    assert (tmp_path / "out").read_bytes() == b"new"
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o666 & ~umask()


def umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


def test_of_several_at_once_one_wins(tmp_path: Path) -> None:
    together, outcomes = threading.Barrier(8), []

    def write(number: int) -> None:
        try:
            with atomic_output(str(tmp_path / "out"), replace=False) as file:
                file.write(b"%d" % number)
                together.wait(PATIENCE)
            outcomes.append(number)
        except OccupiedError:
            outcomes.append(-1)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    [winner] = [number for number in outcomes if number >= 0]
    assert len(outcomes) == 8
    assert (tmp_path / "out").read_text() == str(winner)
    assert names(tmp_path) == ["out"]


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


# Two users in one folder


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


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    put(tmp_path / "pipe")
    reader.join(10)
    assert read == [b"new"]
    assert (tmp_path / "pipe").is_fifo()


def test_a_device_is_written_to() -> None:
    put("/dev/null")
    assert Path("/dev/null").is_char_device()


WRITE = """
import sys
from flame.core.files.atomic import OccupiedError, atomic_output, private_output
with atomic_output(sys.argv[1]) as file:
    file.write(b"new")
"""


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


@pytest.mark.parametrize("target", ["-", "/dev/stdout", "/dev/fd/1"])
def test_standard_output_is_appended_to_what_the_shell_opened(target: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"old ")
    with (tmp_path / "log").open("ab") as log:
        subprocess.run(
            [sys.executable, "-c", WRITE, target], stdout=log, check=True, timeout=PATIENCE
        )
    assert (tmp_path / "log").read_bytes() == b"old new"
    assert names(tmp_path) == ["log"]


def test_closed_standard_output_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(InputError, match="-: cannot be written: standard output is closed"):
        put("-")


def test_a_reader_that_has_gone_is_not_an_input_error() -> None:
    command = [sys.executable, "-c", WRITE, "-"]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        command, stdout=write, stderr=subprocess.PIPE, check=False, timeout=PATIENCE
    )
    os.close(write)
    assert b"BrokenPipeError" in done.stderr
    assert b"InputError" not in done.stderr
