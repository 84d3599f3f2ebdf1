"""Metrics: what the list says of each, and what choosing one comes to, alone and in the app."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from flame.core.loading.many import load
from flame.core.model.metrics import ALL_METRICS, MEMORY_METRICS, NO_MEMORY, STALLS, WAIT, Metric
from flame.core.model.profile import Profile
from flame.core.projection.selection import Selection
from flame.core.rank_summary.opened import profile_of
from flame.core.units import format_value
from flame.tui.dialogs.metrics import MetricDialog, about_metric, listed_metrics
from flame.tui.session.glossary import meaning_of
from flame.tui.session.session import metrics_of
from tests.support.paths import SAMPLES
from tests.support.ranks.random_ranks import random_summary
from tests.support.writers.snapshotfile import SnapshotFile
from tests.tui import sources, traces
from tests.tui.conftest import open_app
from tests.tui.dialog_stage import PENDING, Player, stage


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    return load(traces.decode(tmp_path_factory.mktemp("nsys") / "decode.sqlite"))


def dialog(profile: Profile, shown: str = "gpu") -> MetricDialog:
    return MetricDialog(profile, metrics_of(profile), shown)


async def summed(player: Player) -> None:
    """Wait until every total is known: titles may be cut, too, but not so far to the right."""
    await player.until(lambda: "    …  " not in player.read())


def totals(profile: Profile) -> dict[str, int]:
    """What the rows of activities come to, one by one."""
    gpu, host = profile.activities, profile.host
    ran = {
        (device, moment)
        for device, start, duration in zip(gpu.device, gpu.start, gpu.duration, strict=True)
        for moment in range(int(start), int(start + duration))
    }
    waits = zip(gpu.start.tolist(), gpu.launch_end.tolist(), gpu.launched.tolist(), strict=True)
    return {
        "gpu": sum(gpu.duration.tolist()),
        "exposed": len(ran),
        "count": len(gpu.duration),
        "launch": sum(gpu.launch_share.tolist()),
        "queue": sum(max(start - end, 0) for start, end, launched in waits if launched),
        "idle": sum(gpu.idle.tolist()),
        "waiting": sum(gpu.idle.tolist()),
        "host": sum(host.duration.tolist()),
    }


# What it says


async def test_every_metric_has_a_line_with_its_total_and_the_shown_one_its_meaning(
    recorded: Profile,
) -> None:
    async with stage(dialog(recorded, "queue"), size=(80, 30)) as player:
        await summed(player)
        expected = totals(recorded)
        for place, metric in enumerate(ALL_METRICS[: ALL_METRICS.index(STALLS)], 1):
            value = format_value(expected[metric.key], metric.unit)
            mark = "▸" if metric.key == "queue" else " "
            line = player.line(metric.title)
            assert line.split()[-len(metric.about.split()) :] == metric.about.split()
            assert line.startswith(f"{mark} {place} {metric.title} ") and value in line
        assert player.line("9 PC samples").endswith(f"–  {STALLS.lacking}")
        assert player.line("0 collective wait").endswith(f"–  {WAIT.lacking}")
        assert player.line("memory held").endswith(f"–  {NO_MEMORY}")
        assert meaning_of("queue delay") in player.read()
        await player.press("down")
        assert meaning_of("GPU idle before") in player.read()


def test_every_metric_is_explained_on_a_line_and_says_its_unit() -> None:
    for metric in ALL_METRICS:
        is_number = metric.about.split()[0] in ("number", "bytes")
        assert is_number or "time" in metric.about, metric
        assert max(len(metric.about), len(metric.lacking)) <= 39, metric
        assert meaning_of(metric.title), metric


async def test_a_file_of_stacks_has_its_own_metrics_alone() -> None:
    profile = sources.stacks()
    assert [metric.key for metric in listed_metrics(profile)] == ["samples", "bytes"]
    async with stage(dialog(profile, "samples")) as player:
        await summed(player)
        assert player.line("samples").endswith("40  number, as the file has it")
        assert player.line("bytes allocated").endswith("4.10 kB  bytes, as the file has it")
        await player.press("2")
        assert player.result == "bytes"


def test_times_of_a_file_are_said_to_be_times() -> None:
    cpu = Metric("cpu", "CPU", "ns", lambda table: np.zeros(0, np.int64))
    assert about_metric(cpu) == "time, as the file has it"


def test_samples_that_are_there_are_listed_once(recorded: Profile) -> None:
    keys = [metric.key for metric in listed_metrics(recorded)]
    assert keys == [metric.key for metric in ALL_METRICS]
    sampled = replace(recorded, sampling=object())  # type: ignore[arg-type]
    assert [metric.key for metric in listed_metrics(sampled)] == keys


async def test_a_recording_that_goes_on_says_what_it_cannot_measure(recorded: Profile) -> None:
    live = replace(recorded, exposed_builder=None, waiting_builder=None)
    async with stage(dialog(live)) as player:
        await summed(player)
        for title in ("exposed time", "GPU waiting"):
            assert player.line(title).endswith("–  not while a recording goes on")
        await player.press("7")
        assert player.result is PENDING


async def test_a_trace_that_has_ended_says_what_it_lacks(recorded: Profile) -> None:
    async with stage(dialog(recorded)) as player:
        await summed(player)
        assert player.line("FLOPs").endswith("–  needs shapes: record_shapes=True")
        assert "no peak known: --peak" in player.line("time above bound")
        assert "goes on" not in player.read()


async def test_flops_stand_in_their_column() -> None:
    async with stage(dialog(load(SAMPLES / "torch_small.pt.trace.json.gz"))) as player:
        await summed(player)
        assert "412 GFLOP  number computed" in player.line("FLOPs")
        assert player.line("bytes moved").endswith("–  needs shapes and types: --dtype bf16")


def test_a_summary_of_ranks_says_what_it_cannot_measure() -> None:
    listed = {one.key: one for one in listed_metrics(profile_of(random_summary(1, 0)))}
    assert list(listed) == [metric.key for metric in ALL_METRICS]
    assert listed["wait"].lacking == "no collective was recorded that brings ranks together"
    for key in ("exposed", "waiting"):
        assert listed[key].lacking == "not of a summary: open a rank's trace"


# Choosing


@pytest.mark.parametrize(
    ("keys", "result"),
    [
        (("4",), "launch"),
        (("down", "enter"), "exposed"),
        (("down", "down", "down", "up", "space"), "count"),
        (("enter",), "gpu"),
        (("m",), None),
        (("escape",), None),
        (("q",), None),
        (("9",), PENDING),
        (("0",), PENDING),
    ],
)
async def test_keys_choose_or_leave(
    recorded: Profile, keys: tuple[str, ...], result: object
) -> None:
    async with stage(dialog(recorded)) as player:
        await summed(player)
        await player.press(*keys)
        assert player.result is result or player.result == result


async def test_a_click_chooses(recorded: Profile) -> None:
    async with stage(dialog(recorded)) as player:
        await summed(player)
        await player.click("GPU idle before")
        assert player.result == "idle"


async def test_what_a_trace_has_nothing_of_says_why(tmp_path: Path) -> None:
    profile = load(traces.unlaunched(tmp_path / "alone.sqlite"))
    async with stage(dialog(profile)) as player:
        await summed(player)
        assert player.line("launch API time").endswith("–  no launching call was recorded")
        assert player.line("host self time").endswith("–  no call, range or function of the CPU")
        await player.press("4")
        assert player.result is PENDING
        assert "launch API time: no launching call was recorded" in player.read()
        await player.press("8")
        assert player.result is PENDING


# In the app


async def test_m_lists_the_metrics_and_a_digit_shows_one(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("m")
        assert isinstance(user.app.screen, MetricDialog)
        await user.press("6")
        assert user.screen.shown.metric.key == "idle"
        assert "GPU idle before ▾" in user.read("header")
        await user.press("C")
        assert "--metric idle" in " ".join(shlex.split(user.app.clipboard))
        await user.press("z")
        assert user.screen.shown.metric.key == "gpu"


async def test_the_metric_that_is_shown_changes_nothing(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("m", "1")
        assert user.screen.wanted.metric is None
        await user.press("z")
        assert user.read("status") == " nothing to undo"
        await user.press("m", "m")
        assert user.screen.shown.metric.key == "gpu"


async def test_the_host_keeps_its_own_levels(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("7", "m", "8")
        assert user.levels == "thread,python,nvtx,launch"
        await user.press("m", "7")
        assert user.levels == "cause,thread,python,native,nvtx,launch"
        await user.press("m", "3")
        assert user.levels == "python,native,nvtx,kernel"


async def test_idle_time_is_shown_by_cause_and_a_key_hides_it(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.press("m", "7", "down")
        first = user.screen.view.tree.names(user.screen.view.cursor.node)[0]
        meaning = meaning_of(first)
        await user.rest()
        assert meaning and meaning[1:] in " ".join(user.read("details").split())
        await user.press("W")
        assert user.levels == "thread,python,native,nvtx,launch"
        await user.press("z", "C")
        assert "--metric waiting" in user.app.clipboard
        await user.press("m", "1", "W")
        assert "no cause frames" in user.read("status")


async def test_a_click_on_the_header_opens_the_list(decode: Path) -> None:
    async with open_app(decode) as user:
        await user.pilot.click("#header", offset=(user.read("header").index("GPU time"), 0))
        await user.settle()
        assert isinstance(user.app.screen, MetricDialog)


@pytest.mark.parametrize(
    ("write", "keys"),
    [
        (traces.decode, ["gpu", "exposed", "count", "launch", "queue", "idle", "waiting", "host"]),
        (traces.unlaunched, ["gpu", "exposed", "count", "waiting", "host"]),
    ],
)
async def test_the_palette_has_each_metric_by_name(
    tmp_path: Path, write: Callable[[Path], Path], keys: list[str]
) -> None:
    async with open_app(write(tmp_path / "trace.sqlite"), selection=Selection()) as user:
        offered = user.screen.offered["metrics"]
        titles = {metric.key: metric.title for metric in ALL_METRICS}
        assert [offer.title for offer in offered] == [f"Measure {titles[key]}" for key in keys]
        await user.screen.run_action(offered[2].action)
        await user.settle()
        assert user.screen.shown.metric.key == "count"


async def test_titles_of_memory_are_whole_on_80_columns(tmp_path: Path, recorded: Profile) -> None:
    file = SnapshotFile()
    file.alloc(160_000)
    snapshot = load(file.write(tmp_path / "snapshot.pickle"))
    for profile, shown in ((snapshot, "peak"), (recorded, "gpu")):
        async with stage(dialog(profile, shown), size=(80, 32)) as player:
            await summed(player)
            for metric in MEMORY_METRICS:
                assert player.line(f" {metric.title} ")
            assert all(len(metric.title) <= 18 for metric in ALL_METRICS)


async def test_the_palette_goes_to_moments_of_memory_and_back(tmp_path: Path) -> None:
    file = SnapshotFile()
    much = file.alloc(900_000)
    file.free(much)
    file.alloc(300_000)
    path = file.write(tmp_path / "early.pickle")
    file.fail(5_000, 80)
    file.alloc(100_000)
    async with open_app(path, selection=Selection()) as user:
        titles = [offer.title for offer in user.screen.offered["filters"]]
        assert titles == ["Show memory at the peak", "Show memory at the end"]
    failed = file.write(tmp_path / "failed.pickle")
    async with open_app(failed, selection=Selection(metric="alloc")) as user:
        peak, oom, end = user.screen.offered["filters"]
        for offer, size in ((oom, 300_000), (end, 400_000), (peak, 900_000)):
            await user.screen.run_action(offer.action)
            await user.settle()
            assert int(user.screen.shown.view.tree.total[0]) == size, offer
        for size in (400_000, 300_000, 1_300_000):
            await user.press("z")
            await user.settle()
            assert int(user.screen.shown.view.tree.total[0]) == size
    async with open_app(traces.decode(tmp_path / "t.sqlite"), selection=Selection()) as user:
        assert user.screen.offered["filters"] == []
