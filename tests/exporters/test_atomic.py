"""Files appear whole or not at all; what is no plain file is written to as it is."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from flame.core.errors import InputError
from flame.exporters.atomic import atomic_output
from tests.support.waiting import PATIENCE

not_as_root = pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")


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
from flame.exporters.atomic import atomic_output
with atomic_output(sys.argv[1]) as file:
    file.write(b"new")
"""


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
