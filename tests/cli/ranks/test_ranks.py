"""The command `flame ranks`; what reads the files has tests of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from flame.core.rank_summary.merge import merge_summaries
from flame.core.rank_summary.summary_file import pack_summary, unpack_summary
from tests.cli.conftest import Flame
from tests.support.ranks.random_ranks import random_summary
from tests.support.writers.gated_nsys import write_rank


def write_summary(name: str, *ranks: int) -> str:
    parts = [random_summary(1, rank, 4) for rank in ranks]
    Path(name).write_bytes(pack_summary(merge_summaries(parts)))
    return name


def paths_in(name: str) -> list[str]:
    return [info.path for info in unpack_summary(Path(name).read_bytes(), name).info]


@pytest.fixture
def traces(folder: Path) -> list[str]:
    return [write_rank(folder / f"rank{rank}.sqlite", rank).name for rank in range(4)]


@pytest.mark.deep
def test_ranks_are_summed_up_and_added_later(flame: Flame, traces: list[str]) -> None:
    result = flame("ranks", "rank[01].sqlite", "-o", "x.flamesum", "--here")
    assert (result.code, result.out) == (0, "")
    assert result.err == "flame: wrote x.flamesum: 2 ranks\n"
    result = flame("ranks", "x.flamesum", *traces, "-o", "x.flamesum")
    assert result.code == 0
    assert paths_in("x.flamesum") == traces
    assert "2 of the files are in the summaries already: not read again" in result.err
    assert flame("ranks", *traces, "-o", "y.flamesum").code == 0
    assert Path("x.flamesum").read_bytes() == Path("y.flamesum").read_bytes()


@pytest.mark.deep
def test_tasks_read_their_share(
    flame: Flame, traces: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for task in range(3):
        monkeypatch.setenv("TASK", str(task))
        words = ("--here", "--share", "%q{TASK}/3", "*.sqlite", "-o", "part.%q{TASK}.flamesum")
        assert flame("ranks", *words).code == 0
    assert paths_in("part.0.flamesum") == [traces[0], traces[3]]
    assert flame("ranks", "part.*.flamesum", "-o", "x.flamesum").code == 0
    assert paths_in("x.flamesum") == traces


def test_a_summary_alone_is_reported(flame: Flame) -> None:
    write_summary("x.flamesum", 1, 2)
    assert "two ranks" in flame("ranks", "x.flamesum").out
    told = json.loads(flame("ranks", "x.flamesum", "--json").out)
    assert told["summary"]["ranks"] == 2


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["a.sqlite"], 3, "a.sqlite: no such file"),
        (["full.sqlite"], 2, "1 file to read: name the file to write, too: -o run.flamesum"),
        (
            ["some"],
            3,
            "some: is a folder with no dump (*.fdump) in it: name what is in it: 'some/*.sq",
        ),
        (
            ["ranks.flamesum", "--iteration", "a"],
            2,
            "--iteration: a summary keeps the iterations that",
        ),
        (["a", "-o", "some"], 2, "-o some: is a folder: name a file in it"),
        (["a", "-o", ""], 2, "an empty name: name a file"),
        (["", "-o", "x"], 2, "an empty name: name a file"),
        (["a", "-o", "x", "--iteration", "("], 2, "--iteration '(': not a regular expression"),
        (["a.sqlite", "-o", "x", "--share", "3/3"], 2, "--share 3/3: is no I/N with I from 0"),
        (["a.sqlite", "-o", "x", "--workers", "0"], 2, "--workers 0: is no number of files"),
        (["x*", "-o", "y"], 3, "x*: no file here matches that pattern"),
        (["a.sqlite", "-o", "none/x"], 3, "none/x: cannot be written: No such file or directory"),
        (["a.sqlite", "-o", "%q{NONE}"], 3, "%q{NONE}: there is no variable NONE"),
        (["a.sqlite", "-o", "x", "--groups", "tp"], 2, "--groups 'tp': write names and sizes"),
        (["a", "-o", "x", "--here", "--dask", "local"], 2, "not allowed with argument"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    words: list[str], code: int, said: str, flame: Flame
) -> None:
    Path("full.sqlite").touch()
    write_summary("ranks.flamesum", 1)
    Path("some").mkdir()
    Path("some/a.sqlite").touch()
    result = flame("ranks", *words)
    assert result.code == code
    assert said in result.complaint()


_WITHOUT_DASK = """\
import sys
sys.modules["distributed"] = None
from flame.cli.main import main
sys.exit(main())
"""


def test_without_dask_its_option_is_one_line(folder: Path) -> None:
    command = [sys.executable, "-c", _WITHOUT_DASK, "ranks", "a", "-o", "x", "--dask", "local"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    need = "--dask needs distributed, which is not installed: pip install dask distributed"
    assert (done.returncode, done.stderr) == (2, f"flame: {need}\n")
