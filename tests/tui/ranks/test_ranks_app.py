"""The app on a summary of ranks: what it says of them, and how it leads to the worst one."""

from __future__ import annotations

import shlex
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from flame.cli.parser import parse_command_line
from flame.core.projection.filters import Devices, Pids, Ranks, Steps, Streams, Tids, Time
from flame.core.rank_summary.collective_table import no_collectives
from flame.core.rank_summary.opened import profile_of
from flame.core.rank_summary.rank_communication import no_communication
from flame.core.rank_summary.rank_values import values_of_ranks
from flame.core.rank_summary.summary import LostRank, RankSummary
from flame.core.units import format_ns
from flame.options.command_line import command_line
from flame.options.config import Config
from flame.options.preferences import Memory
from flame.options.selection import selection_of
from flame.tui.dialogs.filter_fields import FIELDS
from flame.tui.dialogs.metrics import listed_metrics
from flame.tui.main.ranks_screen import RanksScreen
from flame.tui.ranks.imbalance import deviation_words
from flame.tui.session.recall import Remembering
from flame.tui.shell.commands import RANKS_COMMANDS
from tests.support.ranks.rank_traces import ODD_KERNEL
from tests.tui.conftest import USUAL, open_app
from tests.tui.ranks.conftest import ODD, RANKS, SLOW, Eight, written
from tests.tui.ranks.reading import go_to, hint, lines, row_of, shown


async def test_the_first_screen_says_how_many_ranks_there_are(summary_file: Path) -> None:
    async with open_app(summary_file) as user:
        await user.rest()
        assert isinstance(user.screen, RanksScreen)
        header = user.read("header")
        assert f"run.flamesum · {RANKS} ranks · mean " in header and " · 1 lost" in header
        assert user.read("tabs").split() == ["Icicle", "Sandwich", "Top", "Ranks"]
        assert "1 rank is lacking: runs/rank0008.sqlite" in user.read("status")


@pytest.mark.deep
async def test_details_say_which_rank_is_the_worst_in_a_frame(
    summary_file: Path, eight_ranks: RankSummary
) -> None:
    async with open_app(summary_file) as user:
        await go_to(user, "model.layers.0.mlp")
        assert f"over {RANKS} ranks" in user.read("details")
        assert f"rank {SLOW}  +2" in row_of(user, "max")
        total = shown(user).view.tree.total[shown(user).view.cursor.node]
        assert f" {format_ns(int(total) / RANKS)}  median" in row_of(user, "mean")
        strip = next(one for one in lines(user, "details") if "▲" in one)
        assert strip.strip() == "·····▲··"
        assert row_of(user, "r:").startswith(f"r: rank {SLOW} +2")


@pytest.mark.deep
async def test_what_a_rank_alone_has_is_told_and_never_as_zero(summary_file: Path) -> None:
    async with open_app(summary_file, (140, 40)) as user:
        await go_to(user, ODD_KERNEL)
        assert row_of(user, "there").endswith(f"on 1 of {RANKS} ranks: rank {ODD}")
        assert row_of(user, "min").endswith("nothing on some")
        await user.press("r")
        assert shown(user).places == (ODD,)
        assert "alone has this frame" in user.read("status")


@pytest.mark.deep
async def test_frames_are_coloured_by_imbalance_and_back(summary_file: Path) -> None:
    async with open_app(summary_file) as user:
        plain = user.read("icicle")
        assert "▲" not in plain
        await user.press("O")
        assert "by imbalance" in user.read("header")
        icicle = user.read("icicle")
        assert "▏▲ " in icicle and "▏▼ " in icicle
        colours = user.screen.shown.view.colouring
        assert colours is not None
        tree = user.screen.shown.view.tree
        for node in range(len(tree)):
            if tree.name(node).endswith(".mlp"):
                assert colours.sign(node) == "▲" and f"rank {SLOW}" in colours.words(node)[0]
            if tree.name(node).startswith("nccl"):
                assert colours.sign(node) in ("▼", "")
            if tree.name(node) == ODD_KERNEL:
                assert colours.sign(node) == "+" and colours.is_one_sided(node)
        await user.press("O")
        assert "by category" in user.read("header") and user.screen.shown.view.colouring is None
        await user.press("z")
        assert user.read("icicle") == icicle
        await user.press("z")
        assert user.read("icicle") == plain


@pytest.mark.deep
async def test_the_command_line_says_the_same(summary_file: Path) -> None:
    async with open_app(summary_file) as user:
        await user.press("O", "p")
        session, selection = user.screen.session, user.screen.shown.selection
        line = command_line(session.inputs.paths, session.options, selection, user.screen.state())
        _, *words = shlex.split(line)
        assert words[words.index("--colours") :][:2] == ["--colours", "imbalance"]
        args = parse_command_line(words)
        assert selection_of(args, "short").colours == "imbalance"
        assert args.state.view == "ranks"


@pytest.mark.deep
async def test_colours_of_imbalance_are_not_remembered_for_other_traces(
    summary_file: Path, decode: Path
) -> None:
    async with open_app(summary_file) as user:
        await user.press("O")
        assert user.screen.memory.preferences.colours is None
    async with open_app(decode, selection=USUAL) as user:
        assert "by imbalance" not in user.read("header")


@pytest.mark.deep
async def test_frames_of_each_rank_are_not_what_the_next_summary_begins_with(
    summary_file: Path, tmp_path: Path
) -> None:
    async with open_app(summary_file) as user:
        memory = Memory(tmp_path / "remembered")
        remembering = Remembering(memory, shown(user), "ranks")
        await user.press("R")
        await user.rest()
        assert "rank" in shown(user).view.tree.levels
        remembering.follow(shown(user))
        assert not memory.preferences.levels
        await user.press("R", "7")
        await user.rest()
        remembering.follow(shown(user))
        assert [*memory.preferences.levels] == ["ranks"]
        await user.press("O")
        await user.rest()
        remembering.follow(shown(user))
        assert shown(user).selection.colours == "imbalance" and not memory.preferences.colours


@pytest.mark.deep
async def test_the_table_sorts_by_how_much_more_the_worst_rank_has(summary_file: Path) -> None:
    async with open_app(summary_file, (200, 40)) as user:
        await user.press("tab", "tab")
        await user.rest()
        heads = user.read("heads")
        for title in ("self▾", "mean", "min", "median", "p95", "max", "worst", "imbal."):
            assert title in heads
        number = heads.replace("%", "").split().index("imbal.") + 1
        await user.press(str(number))
        await user.rest()
        assert "imbal.▾" in user.read("heads")
        table = user.read("table")
        assert table.index("fallback") < table.index("mlp_up") < table.index("flash_fwd")
        found = next(one for one in lines(user, "table") if "sm90_xmma_gemm_mlp_up" in one)
        assert f" {SLOW} " in found and "+2" in found
        odd = next(one for one in lines(user, "table") if "fallback" in one)
        assert f"1 of {RANKS}" in odd and "0 ns" not in table
        assert odd.split().count("–") == 2  # min and median of what most ranks lack


@pytest.mark.deep
async def test_r_goes_to_the_worst_rank_and_back(summary_file: Path) -> None:
    async with open_app(summary_file) as user:
        await go_to(user, "model.layers.1.mlp")
        selected = user.selected
        await user.press("r")
        await user.rest()
        assert user.screen.shown.selection.where == (Ranks((str(SLOW),)),)
        assert user.selected == selected
        assert f"rank {SLOW} of {RANKS}" in user.read("header")
        assert f"a: flame view runs/rank000{SLOW}.sqlite" in user.read("status")
        assert f"rank {SLOW}  +2" in row_of(user, "this rank")
        await user.press("escape")
        assert shown(user).places is None
        await user.press("r", "r")
        assert shown(user).places is None
        await user.press("r", "z")
        assert shown(user).places is None


@pytest.mark.deep
async def test_a_rank_alone_has_what_its_own_trace_has(
    summary_file: Path, eight_ranks: RankSummary
) -> None:
    async with open_app(summary_file) as user:
        await user.app.run_action(f"screen.one_rank({ODD})")
        await user.rest()
        gpu = eight_ranks.rank_total[1]
        assert int(user.screen.shown.view.tree.total[0]) == int(gpu[ODD])
        await user.press("tab", "tab")
        await user.rest()
        assert "worst" not in user.read("heads") and "p50" not in user.read("heads")
        assert "0 ns" not in user.read("table")


@pytest.mark.deep
async def test_a_rank_alone_is_said_to_be_late(eight_ranks: RankSummary, tmp_path: Path) -> None:
    whole = written(replace(eight_ranks, lost=()), tmp_path)
    async with open_app(whole, (120, 40)) as user:
        await user.rest()
        assert f"{RANKS} ranks · mean " in user.read("header") and "1 late" in user.read("header")
        assert f"rank {SLOW}: others wait " in hint(user) and "p: ranks" in hint(user)
        await user.app.run_action(f"screen.one_rank({SLOW})")
        await user.rest()
        details = user.read("details")
        assert f"rank {SLOW} in collectives" in details and "r: all ranks" in details
        assert "r all ranks" in user.read("keys")


@pytest.mark.deep
async def test_a_rank_alone_is_coloured_by_how_far_it_is_from_the_median(
    summary_file: Path, eight_ranks: RankSummary
) -> None:
    async with open_app(summary_file) as user:
        await user.press("O")
        await user.app.run_action(f"screen.one_rank({SLOW})")
        await user.rest()
        view = user.screen.shown.view
        tree, colours = view.tree, view.colouring
        assert colours is not None and "by imbalance" in user.read("header")
        whole = shown(user).of_all.view.tree
        for node in range(1, len(tree)):
            values = values_of_ranks(eight_ranks, whole, np.array([whole.find(tree.names(node))]))
            median = sorted(values[0].tolist())[RANKS // 2 - 1]
            far = (int(tree.total[node]) - median) / median
            assert colours.words(node)[0] == deviation_words(far)
            assert colours.sign(node) == ("" if abs(far) < 0.05 else "▲" if far > 0 else "▼")
        await user.app.run_action(f"screen.one_rank({ODD})")
        await user.rest()
        view = user.screen.shown.view
        odd = next(at for at in range(len(view.tree)) if view.tree.name(at) == ODD_KERNEL)
        assert view.colouring is not None and view.colouring.is_one_sided(odd)
        assert view.colouring.words(odd)[0] == "most ranks lack it"


@pytest.mark.deep
async def test_hostile_names_of_files_do_not_reach_the_terminal(
    eight: Eight, tmp_path: Path
) -> None:
    odd = [
        msgspec.structs.replace(one, path=f"r\x1b[2J{at}\r.sqlite", rank=0)
        for at, one in enumerate(eight.merged.info)
    ]
    table, found = no_collectives(), no_communication()
    lost = (LostRank("\x1b[2Jlost\r", "\x1b]0;gone\r"),)
    plain = replace(eight.merged, collectives=table, communication=found, lost=lost)
    summary = replace(plain, info=tuple(odd), longest_rank=0 * plain.longest_rank)
    async with open_app(written(summary, tmp_path), (120, 40)) as user:
        await user.rest()
        note = user.read("status")
        assert "1 rank is lacking" in note and not {"\x1b", "\r"} & {*note}
        for key in ("O", "r", "p", "v", "down", "enter", "tab", "tab"):
            await user.press(key)
            await user.rest()
            for name in ("header", "status", "details", "heat-map", "ranks-head", "rank-about"):
                assert not {"\x1b", "\r"} & {*user.read(name)}, (key, name)


@pytest.mark.deep
async def test_a_opens_the_trace_of_the_rank_at_the_same_frame(
    summary_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []

    class Ended:
        returncode = 0

    def run(command: list[str], **_: Any) -> Ended:
        started.append(command)
        return Ended()

    @contextmanager
    def suspended() -> Any:
        yield

    monkeypatch.setattr("flame.tui.ranks.open_rank.subprocess.run", run)
    async with open_app(summary_file) as user:
        monkeypatch.setattr(user.app, "suspend", suspended)
        await user.press("a")
        assert "which rank?" in user.read("status") and not started
        await go_to(user, "model.layers.1.mlp")
        await user.press("r", "a")
        assert f"not on this machine: flame view runs/rank000{SLOW}.sqlite" in user.read("status")
        file = summary_file.parent / f"rank000{SLOW}.sqlite"
        file.touch()
        await user.press("a")
        (command,) = started
        assert command[:5] == [sys.executable, "-P", "-m", "flame", "view"]
        args = parse_command_line(command[4:])
        assert args.paths == [str(file)]
        assert args.state.selected[-1] == "model.layers.1.mlp"
        assert selection_of(args, "short").where == ()
        assert "back from the trace" in user.read("status")


@pytest.mark.deep
async def test_what_only_a_trace_can_tell_is_refused_with_its_file(summary_file: Path) -> None:
    async with open_app(summary_file) as user:
        before = shown(user)
        user.screen._project(
            USUAL.__class__(naming=USUAL.naming, where=(Steps(((1, 1),)), Ranks((str(SLOW),))))
        )
        await user.rest()
        assert shown(user) is before
        assert f"rank000{SLOW}.sqlite --step 1" in user.read("status")
        await user.press("s", "s")
        assert user.screen.shown.selection.layout.order == "weight"
        offered = {field.type for field in FIELDS if field.applies(user.screen.session.profile)}
        assert Ranks in offered
        assert offered.isdisjoint((Time, Steps, Devices, Streams, Pids, Tids))


def test_metrics_that_need_activities_are_said_to_be_in_a_ranks_own_trace(
    eight_ranks: RankSummary,
) -> None:
    listed = {one.key: one.lacking for one in listed_metrics(profile_of(eight_ranks))}
    assert "open a rank's trace" in listed["exposed"] and "recording" not in " ".join(
        listed.values()
    )


def test_the_keys_of_ranks_are_of_nothing_else() -> None:
    keys = [key for one in RANKS_COMMANDS for key in one.keys.split(",")]
    assert [keys.count(key) for key in "rap"] == [1, 1, 1]


@pytest.mark.deep
async def test_signs_tell_what_colours_do_in_ascii(
    summary_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLAME_ASCII", "1")
    async with open_app(summary_file, config=Config(theme="flame-ansi")) as user:
        assert not user.app.has_colours
        await user.press("O")
        assert "▏▲ " in user.read("icicle")
