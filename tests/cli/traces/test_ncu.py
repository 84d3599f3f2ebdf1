"""Nsight Compute on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flame.core.loading.inputs import Inputs
from flame.core.options import LoadOptions
from flame.core.projection.labels import Naming
from flame.core.projection.selection import Selection
from flame.options.command_line import options_of
from flame.options.config import DEFAULTS
from flame.options.selection import parse
from flame.options.state import decode
from flame.tui.main.app import FlameApp
from tests.cli.conftest import Flame
from tests.support.writers.ncufile import Row, sass_page
from tests.support.writers.nsysfile import NsysFile
from tests.tui.conftest import User, main_screen

CODE = [Row("LDG.E R2, [R4]", {"stall_long_sb": 6}), Row("EXIT", {"stall_wait": 4})]

SHORT = Selection(naming=Naming("short", numbers=True))


@pytest.fixture
def trace(folder: Path) -> Path:
    with NsysFile(folder / "trace.sqlite") as file:
        file.kernel("gemm", 0, 100, demangled="gemm(float *)", mangled="_Z4gemmPf")
    return Path("trace.sqlite")


@pytest.fixture
def page(folder: Path) -> Path:
    (folder / "source.csv").write_text(sass_page("gemm(float *)", CODE), "utf-8")
    return Path("source.csv")


def test_view_shows_what_is_in_kernels(flame: Flame, trace: Path, page: Path) -> None:
    result = flame("view", trace, "--ncu", page)
    assert result.code == 0
    assert any("+0x0000 LDG.E R2, [R4]" in line for line in result.lines)
    assert "Long Scoreboard" in result.out
    assert "60 ns" in result.out


def test_samples_are_a_metric(flame: Flame, trace: Path, page: Path) -> None:
    result = flame("view", trace, "--ncu", page, "--metric", "stalls", "--levels", "stall")
    assert result.code == 0
    assert "PC samples 10" in result.out


def test_export_writes_instructions_and_reasons(flame: Flame, trace: Path, page: Path) -> None:
    result = flame("export", trace, "--ncu", page, "-f", "folded", "-o", "-")
    assert result.code == 0
    stacks = dict(line.rsplit(" ", 1) for line in result.lines)
    assert sum(map(int, stacks.values())) == 100
    assert {stack.split(";")[-1] for stack in stacks} == {"Long Scoreboard", "Wait"}


def test_info_says_how_much_has_samples(flame: Flame, trace: Path, page: Path) -> None:
    facts = json.loads(flame("info", trace, "--ncu", page, "--json").out)
    assert facts["coverage"]["sass"]["percent"] == 100
    assert "sass" not in json.loads(flame("info", trace, "--json").out)["coverage"]


def test_a_page_alone(flame: Flame, page: Path) -> None:
    view, info = flame("view", page), flame("info", page)
    assert (view.code, info.code) == (0, 0)
    assert "PC samples 10 by kernel, sass, stall" in view.out
    assert "1 profiled launch" in view.out
    assert "Nsight Compute" in info.out
    assert info.out.count("PC samples") == 1


def test_nothing_that_fits_is_no_failure(flame: Flame, trace: Path, folder: Path) -> None:
    (folder / "other.csv").write_text(sass_page("\x1b[31mother()", CODE), "utf-8")
    result = flame("info", trace, "--ncu", "other.csv")
    assert result.code == 0
    assert "none of its kernels is in the trace" in " ".join(result.out.split())
    assert "\x1b" not in result.out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("a,b\n1,2\n", "not the source page of Nsight Compute as CSV"),
        ('"ID","Process ID","Process Name","Metric Name"\n', "the details page of Nsight Compute"),
        (sass_page("k", CODE)[:-3], "cut off"),
        (sass_page("k", CODE).replace('"6"', '"six\x1b[2J"'), "'six\\x1b[2J' is no number"),
    ],
)
@pytest.mark.parametrize("command", [["view"], ["info"], ["export", "-f", "folded", "-o", "-"]])
def test_what_cannot_be_read_is_one_line(
    command: list[str], text: str, said: str, flame: Flame, trace: Path, folder: Path
) -> None:
    (folder / "bad.csv").write_text(text, "utf-8")
    result = flame(*command, trace, "--ncu", "bad.csv")
    assert result.code == 3
    assert result.complaint().startswith("bad.csv: ")
    assert said in result.complaint()


@pytest.mark.parametrize(("path", "said"), [("no.csv", "no such file"), (".", "not a regular")])
def test_what_is_not_there(path: str, said: str, flame: Flame, trace: Path) -> None:
    result = flame("view", trace, "--ncu", path)
    assert result.code == 3
    assert said in result.complaint()


def test_no_file_is_no_file(flame: Flame, trace: Path) -> None:
    result = flame("view", trace, "--ncu", "")
    assert (result.code, result.complaint()) == (2, "--ncu: no file given")


def test_a_page_among_the_traces(flame: Flame, trace: Path, page: Path) -> None:
    result = flame("view", trace, page)
    assert result.code == 2
    assert result.complaint().endswith("flame view trace.sqlite --ncu source.csv")


def test_a_page_is_not_written_over(flame: Flame, trace: Path, page: Path) -> None:
    before = page.read_bytes()
    result = flame("export", trace, "--ncu", page, "-f", "folded", "-o", page)
    assert result.code == 2
    assert result.complaint() == "-o source.csv: is what --ncu names"
    assert page.read_bytes() == before


def test_attach_has_none(flame: Flame, page: Path) -> None:
    result = flame("attach", "1", "--ncu", page)
    assert result.code == 2
    assert "flame view PATH --ncu FILE" in result.complaint()


@pytest.mark.parametrize("path", ["a b.csv", "-x.csv", "/abs/层.ncu-rep"])
def test_the_option_leads_back(path: str) -> None:
    options = LoadOptions(forward=True, ncu=(path, "other.csv"))
    assert parse(options_of(options, SHORT)) == (options, SHORT)


async def test_a_place_in_the_app_is_found_again_from_anywhere(
    trace: Path, page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    app = FlameApp(Inputs((trace,)), LoadOptions(ncu=(str(page),)), SHORT, config=DEFAULTS)
    async with app.run_test(size=(120, 40)) as pilot:
        user = User(app, pilot)
        await user.until(lambda: main_screen(app))
        await user.settle()
        assert user.levels.endswith("kernel,sass,stall")
        await user.press("C")
        await user.settle()
    state = decode("")
    assert state.paths == [str(folder / trace)]
    assert state.options == ["--ncu", str(folder / page)]
