"""`--phases` and `--phase` in all commands, and [report] of the configuration file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flame.core.loading.inputs import Inputs
from flame.core.options import LoadOptions
from flame.core.projection.selection import select
from flame.options.command_line import options_of
from flame.options.config import DEFAULTS
from flame.options.selection import parse
from flame.options.state import decode
from flame.tui.main.app import FlameApp
from tests.cli.conftest import Flame, write_batches
from tests.support.writers.nsysfile import NsysFile
from tests.tui.conftest import User, main_screen

SHORT = select(kernel_names="short", fold_numbers=True)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Four ranges `batch N` with a product each, and a kernel outside of them."""
    path = tmp_path / "steps.sqlite"
    with NsysFile(path) as file:
        write_batches(file)
        file.api("cudaLaunchKernel_v7000", 5_000, 5_010, corr=9)
        file.kernel("softmax", 5_020, 5_050, corr=9)
    return path


@pytest.fixture
def phases(tmp_path: Path) -> Path:
    path = tmp_path / "phases.json"
    path.write_text('{"first, of all": ["nvtx:batch 0"], "mm": ["GEMM"]}')
    return path


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's configuration file, in a folder of its own; empty."""
    path = tmp_path / "config" / "config.toml"
    path.parent.mkdir()
    path.write_text("")
    monkeypatch.setenv("FLAME_CONFIG", str(path))
    return path


def test_a_level_of_phases_is_exported(flame: Flame, trace: Path, phases: Path) -> None:
    words = ("-f", "folded", "-o", "-", "--levels", "phase,kernel")
    done = flame("export", trace, *words, "--phases", phases)
    assert done.lines == ["first, of all;gemm 100", "mm;gemm 306", "unmapped;softmax 30"]
    done = flame("export", trace, *words)
    assert done.lines == ["matrix product;gemm 406", "normalisation and reduction;softmax 30"]
    done = flame("export", trace, *words, "--phases", phases, "--phase", "mm,first*")
    assert done.lines == ["first, of all;gemm 100", "mm;gemm 306"]


def test_a_phase_restricts_the_report_and_not_how_busy_a_gpu_was(
    flame: Flame, trace: Path, phases: Path
) -> None:
    words = ("--section", "phases,kernels,budget", "--json", "--phases", phases)
    every, mm = (
        json.loads(flame("report", trace, *words, *more).out) for more in ((), ("--phase", "mm"))
    )
    told = {row["phase"]: row["gpu_time_ns"] for row in mm["phases"]["rows"]}
    assert told == {"first, of all": 0, "mm": 306, "unmapped": 0}
    assert [row["ns"] for row in mm["kernels"]["rows"]] == [306]
    assert mm["budget"] == every["budget"]


def test_a_row_of_phases_leads_to_its_frame(flame: Flame, trace: Path, phases: Path) -> None:
    words = ("--section", "phases", "--json", "--phases", phases)
    rows = json.loads(flame("report", trace, *words).out)["phases"]["rows"]
    view = rows[0]["view"]
    assert f"--phases {phases} --arrange phases" in view
    assert '{"selected":["first, of all"]}' in view


def test_mistakes_are_said_in_a_line(flame: Flame, trace: Path, phases: Path) -> None:
    done = flame("view", trace, "--phases", phases, "--phase", "other", "--print")
    why = "nothing in the trace matches the selection: its phases are first, of all, mm, unmapped"
    assert (done.code, done.complaint()) == (4, why)
    done = flame("view", trace, "--phase", "mm", "--print")
    assert "its phases are matrix product, normalisation and reduction" in done.complaint()
    phases.write_text('{"a": ["re:("]}')
    for command in ("view", "report"):
        done = flame(command, trace, "--phases", phases)
        assert done.code == 2 and "not a regular expression" in done.complaint()
    done = flame("export", trace, "-f", "folded", "-o", phases, "--phases", phases)
    assert done.complaint() == f"-o {phases}: is what --phases names"
    done = flame("attach", "1", "--phases", phases)
    assert (done.code, "flame view PATH --phases FILE" in done.complaint()) == (2, True)


@pytest.mark.parametrize("path", ["a b.json", "-x.json", "/abs/层.json", "--"])
def test_the_options_lead_back(path: str) -> None:
    options = LoadOptions(forward=True, phases=path)
    found, selection = parse(options_of(options, SHORT))
    assert (found.phases or "").removeprefix("./") == path
    assert selection == SHORT


# In the app


def tops(user: User) -> dict[str, int]:
    tree = user.screen.view.tree
    return {tree.name(node): int(tree.total[node]) for node in tree.children(0)}


@pytest.mark.deep
async def test_phases_in_the_app(
    trace: Path, phases: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    options = LoadOptions(phases=phases.name)
    app = FlameApp(Inputs((trace,)), options, SHORT, config=DEFAULTS)
    async with app.run_test(size=(120, 40)) as pilot:
        user = User(app, pilot)
        await user.until(lambda: main_screen(app))
        await user.settle()
        await user.press("U")
        await user.settle()
        assert user.levels.startswith("phase,")
        assert tops(user) == {"first, of all": 100, "mm": 306, "unmapped": 30}
        await user.press("f", "p", "enter")
        await user.press(*"mm", "enter", "enter")
        await user.settle()
        assert tops(user) == {"mm": 306}
        await user.press("z")
        await user.settle()
        assert len(tops(user)) == 3
        await user.press("C")
        await user.settle()
        await user.press("z")
        await user.settle()
        assert not user.levels.startswith("phase,")
    state = decode("")
    assert state.options[:2] == ["--phases", str(phases)]
    assert "phase" in state.options[state.options.index("--levels") + 1].split(",")


# [report] of the configuration file


def test_the_configuration_names_phases_and_iterations(
    flame: Flame, trace: Path, phases: Path, config: Path
) -> None:
    words = ("--section", "phases,iterations", "--json")
    config.write_text("[report]\nphases = '../phases.json'\niteration = '^batch'\n")
    found = json.loads(flame("report", trace, *words).out)
    assert found["phases"]["by"] == "file"
    assert len(found["iterations"]["rows"]) == 4
    assert "--step" not in found["iterations"]["rows"][0]["view"]


def test_options_count_more_than_the_configuration(
    flame: Flame, trace: Path, phases: Path, config: Path
) -> None:
    config.write_text("[report]\nphases = 'none.json'\niteration = '^batch [01]'\n")
    words = ("--section", "phases,iterations", "--json")
    done = flame("report", trace, *words)
    assert (done.code, done.complaint()) == (
        3,
        f"--phases {config.parent}/none.json: No such file or directory",
    )
    found = flame("report", trace, *words, "--phases", phases, "--iteration", "^batch [0-2]")
    assert len(json.loads(found.out)["iterations"]["rows"]) == 3


def test_iterations_of_the_configuration_need_not_be_in_every_trace(
    flame: Flame, trace: Path, config: Path
) -> None:
    plain = flame("report", trace, "--json").out
    config.write_text("[report]\niteration = '^epoch'\n")
    done = flame("report", trace, "--json")
    assert (done.code, done.err, done.out) == (0, "", plain)


def test_a_mistake_in_the_configuration_is_told(flame: Flame, trace: Path, config: Path) -> None:
    config.write_text("[report]\niteration = '('\n")
    done = flame("report", trace)
    assert done.code == 2
    assert done.complaint().startswith(f"{config}: report.iteration: '(' is not a regular")
