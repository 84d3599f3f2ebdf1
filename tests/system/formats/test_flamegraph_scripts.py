"""Brendan Gregg's scripts read what flame writes, and write what flame compares to.

They are looked for on the PATH, and in FLAME_BENCH_PEERS/FlameGraph, a checkout of
github.com/brendangregg/FlameGraph.
"""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.support.peers import FOLDER
from flame.cli.main import main
from tests.conftest import TRACES, needs_traces
from tests.support.paths import SAMPLES

TRACE = str(SAMPLES / "decode_small.sqlite")
OTHER = str(SAMPLES / "six_levels" / "tiny_llm.fdump")
FOLDS = ("--fold-numbers", "--fold-layers", "--kernel-names", "base")

Seen = Counter[tuple[str, int, str]]
"""How often there is a frame of this name, width and change, as a tooltip of the picture says."""


def script(name: str) -> str:
    """Where the script is; empty where it is not."""
    beside = FOLDER / "FlameGraph" / name
    return shutil.which(name) or (str(beside) if beside.exists() else "")


pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(not shutil.which("perl"), reason="no perl"),
    pytest.mark.skipif(not script("flamegraph.pl"), reason="no flamegraph.pl"),
    pytest.mark.skipif(not script("difffolded.pl"), reason="no difffolded.pl"),
]


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """Two files of stacks, in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("a.folded").write_text('main;old 30\nmain;work 100\nmain;a <b> & "c" 5\n')
    Path("b.folded").write_text('main;new 20\nmain;work 150\nmain;a <b> & "c" 6\n')
    return "a.folded", "b.folded"


def drawn(path: str, *words: str) -> Seen:
    """The frames that flamegraph.pl draws of a file, which it reads without a complaint."""
    command = ["perl", script("flamegraph.pl"), "--minwidth", "0", *words, path]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    assert not done.stderr
    found: Seen = Counter()
    for title in re.findall(r"<title>(.*?)</title>", done.stdout):
        name, width, change = re.fullmatch(
            r"(.*) \(([0-9,]+) samples, [0-9.]+%(?:; ([+-]?[0-9.]+)%)?\)", html.unescape(title)
        ).groups()  # type: ignore[union-attr]
        found[name, int(width.replace(",", "")), change or ""] += 1
    return found


def meant(path: str) -> Seen:
    """The frames of a file of two columns, by plain loops over its lines."""
    base, new = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for line in Path(path).read_text().splitlines():
        stack, *values = line.rsplit(" ", 2)
        frames = ("all", *stack.split(";"))
        for depth in range(1, len(frames) + 1):
            base[frames[:depth]] += int(values[0])
            new[frames[:depth]] += int(values[1])
    return Counter((path[-1], width, "") for path, width in new.items())


def widths(seen: Seen) -> Counter[tuple[str, int]]:
    """The frames without their changes, which are of what ends there alone, in flamegraph.pl.

    Of frames without a width it draws one for all of the same name that begin together.
    """
    found = Counter[tuple[str, int]]()
    for (name, width, _), number in seen.items():
        found[name, width] += number if width else 0
    return +found


def test_changes_are_drawn(pair: tuple[str, str]) -> None:
    assert main(["diff", *pair, "-f", "folded", "-o", "out.folded"]) == 0
    seen = drawn("out.folded")
    assert seen["work", 150, "+28.41"] == seen["all", 176, ""] == 1
    assert seen['a <b> & "c"', 6, "+0.57"] == seen["new", 20, "+11.36"] == 1
    assert main(["diff", *pair, "-f", "folded", "--widths", "base", "-o", "base.folded"]) == 0
    seen = drawn("base.folded", "--negate")
    assert seen["work", 100, "+37.04"] == seen["old", 30, "-22.22"] == 1


@pytest.mark.parametrize("widths_of", ["new", "base"])
@needs_traces
def test_every_frame_of_real_traces_is_drawn(tmp_path: Path, widths_of: str) -> None:
    base, new = (
        str(TRACES / "nsys" / f"{name}.sqlite") for name in ("rtx3070_train_17k", "a100_llm_nvtx")
    )
    out = str(tmp_path / "out.folded")
    words = ["--levels", "nvtx,kernel", "--per", "total", "--widths", widths_of]
    assert main(["diff", base, new, *words, "-f", "folded", "-o", out]) == 0
    assert widths(drawn(out)) == widths(meant(out))


def test_lines_are_those_of_difffolded(
    pair: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    for base, new, levels in ((*pair, "stack"), (TRACE, OTHER, "launch,nvtx,kernel")):
        for path, name in ((base, "1"), (new, "2")):
            Path(name).unlink(missing_ok=True)
            words = ["export", path, "-f", "folded", "--levels", levels, *FOLDS]
            assert main([*words, "-o", name]) == 0
        command = ["perl", script("difffolded.pl"), "1", "2"]
        done = subprocess.run(command, capture_output=True, check=True, text=True)
        capsys.readouterr()
        words = ["--per", "total", "--levels", levels, "-f", "folded"]
        assert main(["diff", base, new, *words]) == 0
        written = capsys.readouterr().out.splitlines()
        assert sorted(written) == sorted(done.stdout.splitlines())


def test_a_file_of_difffolded_opens(
    pair: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["perl", script("difffolded.pl"), *pair]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    Path("both.folded").write_text(done.stdout)
    capsys.readouterr()
    assert main(["view", "both.folded", "--print"]) == 0
    text = capsys.readouterr().out
    assert "work" in text and "150" in text
