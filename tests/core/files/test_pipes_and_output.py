"""What is no plain file is written to as it is: pipes, devices, standard output."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from flame.core.errors import InputError
from tests.core.files.written_files import WRITE, names, put
from tests.support.waiting import PATIENCE


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
