"""What goes wrong: an exit code and one line of complaint."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Flame
from tests.support.writers.nsysfile import NsysFile


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "flame PATH"),
        (["view"], "PATH"),
        (["info", "a", "--depth", "b"], "unknown: --depth (see flame info --help)"),
        (["export", "x"], "-f"),
        (["export", "x", "-f", "docx"], "'docx'"),
        (["view", "x", "--level", "kernel"], "--level"),
        (["view", "x", "--levels", "kernel,nope"], "'nope'"),
        (["view", "x", "--levels", ","], "--levels"),
        (["view", "x", "--levels", "nvtx,nvtx"], "twice"),
        (["view", "x", "--metric", ""], "metric"),
        (["view", "x", "--shapes", "--levels", "kernel"], "--shapes"),
        (["view", "x", "--time", "7s/5s"], "empty"),
        (["view", "x", "--time", "soon/"], "soon"),
        (["view", "x", "--time"], "--time"),
        (["view", "x", "--nvtx-range", ""], "--nvtx-range"),
        (["view", "x", "--step", "5-3"], "--step"),
        (["view", "x", "--rank", ","], "--rank"),
        (["view", "x", "--device", "zero"], "'zero'"),
        (["view", "x", "--device", "-1"], "'-1'"),
        (["view", "x", "--stream", "1,,2"], "'1,,2'"),
        (["view", "x", "--pid", "9" * 30], "not a number"),
        (["view", "x", "--kernel", "(unclosed"], "--kernel"),
        (["view", "x", "--include", "kernel,nope"], "'nope'"),
        (["view", "x", "--kernel-names", "tiny"], "'tiny'"),
        (["view", "x", "--nvtx-names", "short"], "'short'"),
        (["view", "x", "--rename", "no rule"], "--rename"),
        (["view", "x", "--rename", "(=x"], "--rename"),
        (["view", "x\n", "--nope\x1b[0m"], r"\x1b"),
    ],
)
def test_usage_error(args: list[str], said: str, flame: Flame) -> None:
    result = flame(*args)
    assert result.code == 2
    assert said in result.complaint()


def test_usage_errors_say_which_help_to_ask(flame: Flame) -> None:
    assert "(see flame view --help)" in flame("x", "--nope").complaint()
    assert "(see flame export --help)" in flame("export").complaint()


@pytest.mark.parametrize("command", [["view"], ["info"], ["export", "-f", "folded"], []])
@pytest.mark.parametrize("content", [None, b"", b"no trace", b"SQLite format 3\0 and no more"])
def test_input_error(content: bytes | None, command: list[str], flame: Flame, folder: Path) -> None:
    path = folder / "bad.sqlite"
    if content is not None:
        path.write_bytes(content)
    result = flame(*command, path)
    assert result.code == 3
    assert str(path) in result.complaint()
    assert not list(folder.glob("*.txt"))


@pytest.mark.parametrize("command", [["view"], ["export", "-f", "folded"]])
def test_nothing_matches(command: list[str], flame: Flame, trace: Path, folder: Path) -> None:
    result = flame(*command, trace, "--kernel", "nothing like it")
    assert result.code == 4
    assert "nothing" in result.complaint()
    assert not list(folder.glob("*.txt"))


def test_a_metric_that_the_trace_lacks_is_a_usage_error(flame: Flame, trace: Path) -> None:
    result = flame("view", trace, "--metric", "nope")
    assert result.code == 2
    assert "'nope': choose from gpu, exposed, count" in result.complaint()


@pytest.mark.parametrize("metric", ["exposed", "waiting"])
def test_stacks_do_not_say_when_a_gpu_was_busy(metric: str, flame: Flame, folder: Path) -> None:
    (folder / "stacks.folded").write_text("main;work 3\n")
    result = flame("view", folder / "stacks.folded", "--metric", metric)
    assert result.code == 2
    assert f"--metric {metric}: " in result.complaint()
    assert "stacks do not say when a GPU was busy" in result.complaint()


def test_nothing_to_export(flame: Flame, folder: Path) -> None:
    with NsysFile(folder / "host.sqlite") as file:
        file.nvtx("load", 0, 100)
    assert flame("export", "host.sqlite", "-f", "folded", "-o", "-").out.endswith(";load 100\n")
    result = flame("export", "host.sqlite", "-f", "folded", "--metric", "gpu")
    assert result.code == 4
    assert "GPU time is zero" in result.complaint()


def test_an_unforeseen_error_is_one_line_too(
    flame: Flame, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise KeyError("first\nsecond")

    monkeypatch.setattr("flame.console.info.as_text", broken)
    result = flame("info", trace)
    assert result.code == 70
    assert "internal error: KeyError" in result.complaint()
    assert "FLAME_DEBUG=1" in result.err
    monkeypatch.setenv("FLAME_DEBUG", "1")
    assert "Traceback" in flame("info", trace).err


def test_interrupted_load_is_quiet(
    flame: Flame, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("flame.core.loading.many.load_file", interrupted)
    result = flame("info", trace)
    assert (result.code, result.out, result.err) == (130, "", "")
