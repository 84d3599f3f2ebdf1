"""Traces that are no files here: standard input, pipes, patterns that the shell has left, URLs."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Thread

import pytest

from tests.cli.conftest import Flame
from tests.cli.job_terminal import Shell
from tests.support.file_server import serving
from tests.support.paths import SAMPLES
from tests.support.waiting import PATIENCE, wait_until, wait_until_sleeping

SAMPLE = SAMPLES / "decode_small.sqlite"
TRACE = b"main;work 12\nmain 3\n"
FLAME = (sys.executable, "-m", "flame")


def piped(data: bytes, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run flame on what comes by standard input."""
    return subprocess.run(
        [*FLAME, *words], input=data, capture_output=True, timeout=2 * PATIENCE, check=False
    )


def left() -> list[Path]:
    return list(Path(tempfile.gettempdir()).glob(".flame-*"))


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_a_trace_by_standard_input(name: str) -> None:
    done = piped(gzip.compress(SAMPLE.read_bytes()), "info", name, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["path"] == "standard input"
    assert [source["path"] for source in told["sources"]] == ["standard input"]
    assert left() == []


def test_the_static_view_of_standard_input() -> None:
    done = piped(TRACE, "view", "-", "--print")
    assert done.stdout.startswith(b"stdin ")
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("data", "words", "code", "says"),
    [
        (b"", ("info", "-"), 3, b"flame: standard input: the file is empty\n"),
        (b"\0" * 99, ("info", "-"), 3, b"flame: standard input: not a trace flame knows"),
        (TRACE, ("info", "-", "/dev/stdin"), 2, b"standard input is named twice"),
        (TRACE, ("view", "--web", "-"), 2, b"--web opens - for every page"),
        (TRACE, ("ranks", "-", "-o", "a.flamesum"), 2, b"standard input: flame ranks keeps where"),
        (TRACE, ("export", "-", "-f", "folded", "-o", "there/is/none"), 3, b"cannot be written"),
    ],
)
def test_what_cannot_be_shown_is_told_in_one_line(
    data: bytes, words: tuple[str, ...], code: int, says: bytes
) -> None:
    done = piped(data, *words)
    assert (done.returncode, done.stdout) == (code, b"")
    assert says in done.stderr
    assert done.stderr.count(b"\n") == 1
    assert left() == []


def test_an_export_is_called_after_standard_input(folder: Path) -> None:
    assert piped(TRACE, "export", "-", "-f", "folded").returncode == 0
    assert (folder / "stdin.collapsedstack.txt").read_bytes() == b"main 3\nmain;work 12\n"


def test_a_pipe(flame: Flame, folder: Path) -> None:
    os.mkfifo(path := folder / "pipe")
    writer = Thread(target=path.write_bytes, args=(TRACE,))
    writer.start()
    done = flame("info", path, "--json")
    writer.join()
    assert json.loads(done.out)["path"] == str(path)
    assert left() == []


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash")
def test_two_commands_of_the_shell() -> None:
    line = f"{sys.executable} -m flame diff <(cat {SAMPLE}) <(cat {SAMPLE}) --json"
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=True)
    assert json.loads(done.stdout)


def test_files_of_a_quoted_pattern_are_opened_in_order(flame: Flame, folder: Path) -> None:
    for name in ("rank1.folded", "rank0.folded"):
        (folder / name).write_bytes(TRACE)
    paths = [
        one["path"] for one in json.loads(flame("info", "rank*.folded", "--json").out)["sources"]
    ]
    assert paths == ["rank0.folded", "rank1.folded"]
    assert flame("info", "x*.json").complaint() == "x*.json: no file here matches that pattern"


def test_files_of_a_pattern_are_opened_once_and_pipes_are_left_alone(
    flame: Flame, folder: Path
) -> None:
    (folder / "run").mkdir()
    (folder / "run" / "a.folded").write_bytes(TRACE)
    (folder / "run" / "again").symlink_to(".")
    (folder / "run" / "gone.folded").symlink_to("nowhere")
    os.mkfifo(folder / "run" / "pipe.folded")
    told = json.loads(flame("info", "run/**/*.folded", "--json").out)
    assert [one["path"] for one in told["sources"]] == ["run/a.folded"]


def test_a_pipe_is_not_opened_twice(flame: Flame, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    told = flame("info", "pipe", folder / "pipe")
    assert (told.code, told.complaint()) == (
        2,
        f"{folder / 'pipe'} is named twice, and can be read once",
    )


@pytest.mark.parametrize("option", ["--ncu", "--phases"])
def test_only_traces_are_fetched(option: str, flame: Flame, folder: Path) -> None:
    (folder / "a.folded").write_bytes(TRACE)
    told = flame("view", "a.folded", option, "https://me:pw@host/x.csv?key=secret")
    said = f"{option} https://host/x.csv: only traces are fetched: copy it here"
    assert (told.code, told.complaint()) == (2, said)


@pytest.mark.parametrize("words", [(), ("--json",), ("--md",), ("--html", "page"), ("--all",)])
def test_no_report_tells_what_is_secret_in_a_url(
    words: tuple[str, ...], flame: Flame, folder: Path
) -> None:
    with serving() as server:
        server.files["/t.sqlite?sig=topsecret"] = SAMPLE.read_bytes(), {}
        url = server.url("/t.sqlite")
        secret = url.replace("://", "://us:s3cret@") + "?sig=topsecret"
        done = flame("report", "--no-cache", secret, *words)
    assert done.code == 0, done.err
    text = done.out + done.err + (Path("page").read_text("utf-8") if "page" in words else "")
    assert "s3cret" not in text and "topsecret" not in text
    assert words == ("--md",) or f"flame view {url}" in text


def test_a_file_called_like_a_pattern_is_opened(flame: Flame, folder: Path) -> None:
    (folder / "a[1].folded").write_bytes(TRACE)
    (folder / "a1.folded").write_bytes(b"other 1\n")
    assert json.loads(flame("info", "a[1].folded", "--json").out)["path"] == "a[1].folded"


def test_a_stream_that_the_disk_has_no_room_for(
    flame: Flame, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flame.core.fetching.disk_space.disk_usage", lambda _: (1_000, 900, 100))
    os.mkfifo(path := folder / "pipe")
    writer = Thread(target=path.write_bytes, args=(TRACE,))
    writer.start()
    told = flame("info", path).complaint()
    writer.join()
    assert told.startswith(f"{path}: too large: the disk of ")
    assert "set TMPDIR" in told
    assert left() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_nothing_is_left_where_a_signal_ends_it(number: signal.Signals) -> None:
    with subprocess.Popen(
        [*FLAME, "info", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as one:
        assert one.stdin is not None
        one.stdin.write(TRACE)
        one.stdin.flush()
        wait_until(lambda: any(path.stat().st_size for room in left() for path in room.glob("*/*")))
        wait_until_sleeping(one.pid)
        one.send_signal(number)
        code = one.wait(PATIENCE)
        one.stdin.close()
    assert code == (130 if number == signal.SIGINT else -number)
    assert left() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_nobody_waits_for_ever_for_a_pipe_that_nobody_writes(
    number: signal.Signals, folder: Path
) -> None:
    os.mkfifo(path := folder / "pipe")
    with subprocess.Popen([*FLAME, "info", path], stderr=subprocess.PIPE) as one:
        wait_until(lambda: any(place for room in left() for place in room.iterdir()))
        wait_until_sleeping(one.pid)
        one.send_signal(number)
        _, err = one.communicate(timeout=PATIENCE)
    assert (one.returncode, err) == (130 if number == signal.SIGINT else -number, b"")
    assert left() == []


def test_standard_input_that_is_a_terminal_is_refused() -> None:
    shell = Shell()
    try:
        told = shell.run(f"{sys.executable} -m flame info -")
        assert "standard input is the terminal: pipe a trace into flame" in " ".join(told.split())
    finally:
        shell.close()
