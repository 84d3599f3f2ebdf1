"""The app on what is no export of Nsight Systems: stacks of a file, PyTorch traces, several."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from flame.core.projection.filters import Steps
from flame.core.projection.selection import Selection
from flame.tui.shell.command_palette import Commands
from samples import make_torch_sample
from tests.tui.conftest import User, open_app

FOLDED = "main;work (app.py:12);multiply 30\nmain;wait 10\n"
SAMPLED = {
    "$schema": "https://www.speedscope.app/file-format-schema.json",
    "shared": {"frames": [{"name": "main"}, {"name": "compute"}, {"name": "wait"}]},
    "profiles": [
        {
            "type": "sampled",
            "name": name,
            "unit": "milliseconds",
            "startValue": 0,
            "endValue": 100,
            "samples": [[0, 1], [0, 2], [0, 1]],
            "weights": [50, 20, 30],
        }
        for name in ("first", "second")
    ],
}
NO_TIMES = "this file has no times: it says how much every stack weighs, but not when"


@pytest.fixture
def folded(tmp_path: Path) -> Path:
    path = tmp_path / "cpu.folded"
    path.write_text(FOLDED)
    return path


@pytest.fixture
def sampled(tmp_path: Path) -> Path:
    path = tmp_path / "cpu.speedscope.json"
    path.write_text(json.dumps(SAMPLED))
    return path


@pytest.fixture(scope="module")
def torch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("torch") / make_torch_sample.NAME
    path.write_bytes(gzip.compress(make_torch_sample.text().encode(), 1))
    return path


async def show(user: User, view: str) -> None:
    user.screen.action_show_view(view)
    await user.rest()


# Stacks of a file


async def test_stacks_are_shown_with_their_own_measure_and_words(folded: Path) -> None:
    async with open_app(folded) as user:
        assert "samples ▾   stack" in user.read("header")
        await user.press("down", "down")
        await user.rest()
        details = user.read("details")
        assert "work" in details and "app.py:12" in details
        assert "total       30  75.0 % of all" in details
        assert "GPU" not in details and "count" not in details and "p99" not in details
        assert user.read("status").strip() == "work  30 · 75.0 % of all"
        await user.press("ctrl+n")
        assert "no other metric in this trace" in user.read("status")


async def test_levels_that_a_file_lacks_are_said_at_first(folded: Path) -> None:
    async with open_app(folded, selection=Selection(levels=("kernel",))) as user:
        assert "this trace has no frames of kernel  L: levels" in user.read("status")


async def test_a_frame_shows_its_source_rather_than_its_numbers(tmp_path: Path) -> None:
    path = tmp_path / "narrow.folded"
    path.write_text("a;forward (model.py:12) 30\na;forward (another_model.py:9) 20\na;b 50\n")
    async with open_app(path, size=(120, 15)) as user:
        row = user.read("icicle").splitlines()[2]
        assert "▏forward  model.py:12  ▏" in row and "▏forward  20.0 %" not in row
        await user.press("d")
        await user.rest()
        assert "▏forward  model.py:12  30.0 %" in user.read("icicle")


async def test_the_table_of_stacks_has_no_columns_of_activities(folded: Path) -> None:
    async with open_app(folded) as user:
        await show(user, "top")
        heads = user.read("heads").split()
        assert heads[0] == "self▾" and {"total", "%", "name"} <= {*heads}
        assert not {"count", "mean", "p99"} & {*heads}
        await user.press("s", "s")
        assert "name▴  4 rows" in user.read("heads")


async def test_the_timeline_says_that_there_are_no_times(folded: Path) -> None:
    async with open_app(folded) as user:
        await show(user, "timeline")
        assert NO_TIMES in user.read("timeline-head")
        for key in ("right", "down", "enter", "plus", "full_stop", "b", "home", "pagedown"):
            await user.press(key)
            assert NO_TIMES in user.read("status")
        await user.press("escape", "slash", "w", "enter", "n")
        assert user.read("timeline-rows").strip() == ""


async def test_samples_with_times_have_a_row_per_thread(sampled: Path) -> None:
    async with open_app(sampled) as user:
        await show(user, "timeline")
        rows = user.read("timeline-rows").splitlines()
        assert rows[0].split()[0].endswith("first") and "compute" in rows[0]
        assert "second" in rows[1] and "wait" in rows[1]
        assert "GPU" not in user.read("timeline-head")
        await user.press("right")
        assert user.selected == "compute"
        assert user.read("status").strip() == "compute · 50.0 ms from 0.000 000 s"
        await user.press("right", "b", "enter")
        assert user.screen.shown.view.tree.total[0] == 2 * 20_000_000


# Traces of PyTorch


async def test_a_step_is_a_filter_with_a_chip(torch: Path) -> None:
    async with open_app(torch) as user:
        user.screen._set_filters((Steps(((5, 6),)),))
        await user.rest()
        assert " × steps 5–6" in user.read("chips")
        names = {user.screen.view.name(node) for node in range(len(user.screen.view.tree))}
        assert "replay" in " ".join(names) and "train_step" not in names
        user.screen._set_filters((Steps(((3, 3),)),))
        await user.rest()
        assert " × step 3" in user.read("chips")


async def test_space_goes_past_the_frames_that_hold_all(torch: Path) -> None:
    async with open_app(torch) as user:
        user.screen._project(replace(user.screen.wanted, levels=("python",)))
        await user.rest()
        await user.press("down", "space")
        assert user.selected == "train_step"
        await user.press("space")
        assert user.selected == "forward"


async def test_python_functions_stand_with_their_source_line(torch: Path) -> None:
    async with open_app(torch, size=(160, 40)) as user:
        assert "main  run.py:61" in user.read("icicle")
        user.screen._project(replace(user.screen.wanted, levels=("python",)))
        await user.rest()
        await show(user, "top")
        line = next(one for one in user.read("table").splitlines() if "attention" in one)
        assert line.rstrip().endswith("attention  model.py:33")
        assert "python" not in user.read("table")


async def test_operators_are_called_so_everywhere(torch: Path) -> None:
    async with open_app(torch) as user:
        user.screen._project(replace(user.screen.wanted, levels=("nvtx", "kernel")))
        await user.rest()
        await user.press("down")
        assert user.read("details").startswith(" operator ")
        await show(user, "top")
        assert "nvtx" not in user.read("table") and " operator " in user.read("table")
        assert " operator › kernel" in user.read("header")
        await user.press("v", "v")
        assert "operator rows" in user.read("heads") or "kernel rows" in user.read("heads")
        await user.press("L")
        told = user.read("dialog")
        assert "operator   operators open at the launch: --levels nvtx" in told
        assert "layers         operators, layers folded; kernels" in told
        await user.press("escape")
        titles = [hit.title for hit in Commands(user.screen)._here()]
        assert "Show or hide the level operator  (8)" in titles
        assert not any("nvtx" in title for title in titles)
        helped = "".join(piece.text for line in user.screen._help(76) for piece in line)
        assert "8 operator" in helped and "nvtx" not in helped.lower()


async def test_modules_are_one_where_layers_are_folded(torch: Path) -> None:
    async with open_app(torch) as user:
        await user.press("L", "3")
        await user.rest()
        assert user.levels == "module,kernel"
        names = {user.screen.view.name(node) for node in range(len(user.screen.view.tree))}
        modules = {name for name in names if name.startswith("nn.Module: ")}
        kinds = ("Model", "Block", "RMSNorm", "Linear")
        assert modules == {f"nn.Module: {kind}_*" for kind in kinds}
