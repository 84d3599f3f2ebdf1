"""The filters dialog: every kind set, changed, removed, by keys and by mouse."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.loading.many import load, load_all
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.names.phases import parse_phases
from flame.core.projection.filter_kinds import FILTER_KINDS
from flame.core.projection.filters import (
    Devices,
    Filter,
    HideFrames,
    HideStacks,
    Include,
    Kernel,
    MinShare,
    NvtxRange,
    Phases,
    Pids,
    Ranks,
    ShowFrom,
    ShowStacks,
    Steps,
    Streams,
    Tids,
    Time,
)
from flame.core.projection.phases import name_phases
from flame.tui.dialogs.filter_fields import FIELDS
from flame.tui.dialogs.filters import FiltersDialog, slots
from flame.tui.dialogs.text_fields import PHASES_FIELD, TextField
from flame.tui.session.query import SelectedName
from tests.support.writers.nsysfile import HTOD, NsysFile
from tests.tui import sources, traces
from tests.tui.dialog_stage import PENDING, stage
from tests.tui.traces import HOSTILE

MS = 1_000_000


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """Two GPUs, streams 7 and 13, two processes with a thread each."""
    with NsysFile(tmp_path_factory.mktemp("filters") / "two.sqlite") as trace:
        for place, pid in enumerate((100, 200)):
            trace.gpu(place, f"H100 {place}", pid=pid)
            trace.process(pid, f"rank{place}")
            trace.thread(pid, pid + 1, "worker")
            trace.api("cudaLaunchKernel", 10, 20, place + 1, pid=pid, tid=pid + 1)
        trace.nvtx("step", 0, 5, pid=100, tid=101)
        trace.kernel("gemm", 100, 400, 1, pid=100, stream=7)
        trace.kernel("argmax", 100, 200, 2, device=1, pid=200, stream=13)
        trace.memcpy(HTOD, 500, 600, corr=None, device=1, pid=200, stream=13)
    return load(trace.path)


@pytest.fixture(scope="module")
def stacks() -> Profile:
    return sources.stacks()


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    return sources.training(tmp_path_factory.mktemp("training") / "decode.sqlite")


def dialog(
    profile: Profile, *where: Filter, name: str = "gemm", kind: Kind = Kind.KERNEL
) -> FiltersDialog:
    return FiltersDialog(profile, where, SelectedName(name, kind))


# As data


def test_there_is_a_field_for_every_kind_of_filter() -> None:
    kinds = Filter.__args__
    assert {field.type for field in FIELDS} == set(kinds)


def test_set_filters_come_before_room_for_more_of_their_kind() -> None:
    where = (MinShare(1.0), ShowStacks("a"), Time(1, 2), ShowStacks("b"))
    rows = [(slot.field.title, slot.place) for slot in slots(where)]
    assert rows[:4] == [
        *(("only stacks with", 1), ("only stacks with", 3), ("only stacks with", None)),
        ("without", None),
    ]
    assert [place for title, place in rows if title == "time"] == [2]
    assert [place for title, place in rows if title == "minimum share"] == [0]


@pytest.mark.parametrize(
    "one",
    [
        *(ShowStacks("a|b"), HideFrames("^$"), Kernel("gemm"), MinShare(0.25)),
        *(Time(1, 2_500 * MS), NvtxRange("user@host", "NCCL")),
    ],
)
def test_what_is_spelled_is_read_back(one: Filter) -> None:
    field = next(field for field in FIELDS if field.type is type(one))
    assert isinstance(field, TextField)
    assert field.read(field.spell(one)) == one


# Typing


@pytest.mark.parametrize(
    ("row", "text", "one"),
    [
        ("only stacks with", "ge+mm", ShowStacks("ge+mm")),
        ("without", "copy", HideStacks("copy")),
        ("from", "gemm", ShowFrom("gemm")),
        ("hide", "cuda.*", HideFrames("cuda.*")),
        ("time", "1ms/2ms", Time(MS, 2 * MS)),
        ("NVTX range", "step*@NCCL", NvtxRange("step*", "NCCL")),
        ("kernel", "gemm", Kernel("gemm")),
        ("minimum share", "0.5 %", MinShare(0.5)),
    ],
)
async def test_what_is_typed_becomes_a_filter(
    profile: Profile, row: str, text: str, one: Filter
) -> None:
    async with stage(dialog(profile)) as user:
        await user.click(f" {row}")
        await user.type(text)
        await user.press("enter")
        assert user.line("▸").startswith("▸  apply  1 filter")
        await user.press("enter")
        assert user.result == (one,)


@pytest.mark.parametrize(
    ("row", "text", "complaint"),
    [
        ("only stacks with", "(", "not a regular expression"),
        ("kernel", "*", "not a regular expression"),
        ("time", "5", "use A/B"),
        ("time", "5x/6", "not a time"),
        ("time", "6s/5s", "empty"),
        ("NVTX range", "@NCCL", "a range name is missing"),
        ("minimum share", "many", "not a number"),
        ("minimum share", "101", "0 to 100"),
        ("minimum share", "nan", "0 to 100"),
    ],
)
async def test_what_is_wrong_is_said_while_typing(
    profile: Profile, row: str, text: str, complaint: str
) -> None:
    async with stage(dialog(profile)) as user:
        await user.click(f" {row}")
        await user.type(text)
        assert complaint in user.read()
        await user.press("enter")
        assert user.entry == text
        assert complaint in user.read()
        await user.press("escape", "a")
        assert user.result == ()


async def test_a_range_that_there_is_not_is_said_while_typing(tmp_path: Path) -> None:
    async with stage(dialog(load(traces.decode(tmp_path / "decode.sqlite")))) as user:
        await user.click("  NVTX range")
        await user.type("model.layers")
        said = "no range is called so: *model.layers* would find 6 names"
        assert said in user.read()
        await user.type("*model.layers*")
        assert "called so" not in user.read()
        await user.type("model.tails")
        assert "no range is called so" in user.read() and "would" not in user.read()
        await user.press("enter", "a")
        assert user.result == (NvtxRange("model.tails"),)


async def test_a_new_filter_begins_with_the_selected_frame(profile: Profile) -> None:
    async with stage(dialog(profile, name="f(int)")) as user:
        await user.press("enter")
        assert user.entry == r"^f\(int\)$"
        await user.press("g", "enter", "enter")
        assert user.result == (ShowStacks("g"),)


async def test_the_range_and_kernel_of_the_selected_frame(profile: Profile) -> None:
    async with stage(dialog(profile, name="user@host", kind=Kind.NVTX)) as user:
        await user.click("  NVTX range")
        assert user.entry == r"user\@host"
        await user.press("escape")
        await user.click("  kernel")
        assert user.entry == ""
    async with stage(dialog(profile, name="all", kind=Kind.ROOT)) as user:
        await user.press("enter")
        assert user.entry == ""


async def test_a_filter_is_changed_in_its_place(profile: Profile) -> None:
    where = (Kernel("a"), ShowStacks("b"), MinShare(1.0))
    async with stage(dialog(profile, *where)) as user:
        await user.press("enter")
        assert user.entry == "b"
        await user.press("ctrl+u")
        assert user.entry == ""
        await user.press("c", "enter", "enter")
        assert user.result == (Kernel("a"), ShowStacks("c"), MinShare(1.0))


async def test_an_emptied_filter_is_gone(profile: Profile) -> None:
    async with stage(dialog(profile, ShowStacks("b"))) as user:
        await user.press("enter", "ctrl+u", "enter", "enter")
        assert user.result == ()


async def test_several_filters_of_a_kind_stand_side_by_side(profile: Profile) -> None:
    async with stage(dialog(profile, ShowStacks("a"))) as user:
        await user.click("only stacks with +")
        await user.type("b")
        await user.press("enter", "a")
        assert user.result == (ShowStacks("a"), ShowStacks("b"))


async def test_the_same_filter_is_not_set_twice(profile: Profile) -> None:
    async with stage(dialog(profile, ShowStacks("a"))) as user:
        await user.click("only stacks with +")
        await user.type("a")
        await user.press("enter", "enter")
        assert user.result == (ShowStacks("a"),)


async def test_the_time_page_tells_how_long_the_trace_is(profile: Profile) -> None:
    async with stage(dialog(profile)) as user:
        await user.click("  time")
        assert "the trace runs from" in user.read()


# Choosing


@pytest.mark.parametrize(
    ("row", "rows", "one"),
    [
        ("device", ["GPU 0 H100 0", "GPU 1 H100 1"], Devices((0,))),
        ("stream", ["stream 7", "stream 13"], Streams((7,))),
        ("process", ["rank0 [100]", "rank1 [200]"], Pids((100,))),
        ("thread", ["worker [101] of rank0 [100]", "worker [201] of rank1 [200]"], Tids((101,))),
        ("kinds", ["kernel", "memcpy", "memset", "graph"], Include((Kind.KERNEL,))),
    ],
)
async def test_what_is_chosen_becomes_a_filter(
    profile: Profile, row: str, rows: list[str], one: Filter
) -> None:
    async with stage(dialog(profile)) as user:
        await user.click(f" {row}")
        shown = [line for line in user.read().splitlines() if "[ ]" in line]
        assert [line[6:].split("   ")[0] for line in shown] == rows
        await user.press("space", "enter", "enter")
        assert user.result == (one,)


async def test_what_is_chosen_twice_is_off_again(profile: Profile) -> None:
    async with stage(dialog(profile)) as user:
        await user.click("  device")
        await user.press("space")
        assert "[x] GPU 0" in user.read()
        await user.press("space")
        assert "[x]" not in user.read()
        await user.press("enter", "enter")
        assert user.result == ()


async def test_options_have_their_share_of_the_gpu_time(profile: Profile) -> None:
    async with stage(dialog(profile)) as user:
        await user.click("  device")
        assert user.line("GPU 0").split()[-4:] == ["60.0", "%", "300", "ns"]
        assert user.line("GPU 1").split()[-4:] == ["40.0", "%", "200", "ns"]


async def test_several_can_be_chosen_with_the_mouse(profile: Profile) -> None:
    async with stage(dialog(profile)) as user:
        await user.click("  kinds")
        await user.click("memset")
        await user.click("memcpy")
        await user.press("enter", "a")
        assert user.result == (Include((Kind.MEMCPY, Kind.MEMSET)),)


async def test_what_was_chosen_is_on_and_can_be_cleared(profile: Profile) -> None:
    async with stage(dialog(profile, Streams((13, 99)))) as user:
        await user.click("  stream")
        assert "[x] stream 13" in user.read() and "[ ] stream 7" in user.read()
        assert "not in this trace" in user.line("[x] stream 99")
        await user.press("r", "enter", "enter")
        assert user.result == ()


async def test_a_list_can_be_left_without_a_change(profile: Profile) -> None:
    async with stage(dialog(profile)) as user:
        await user.click("  device")
        await user.press("space", "escape")
        assert user.line("▸").startswith("▸ device             ·")
        await user.press("escape")
        assert user.result is None


def titles(shown: str) -> list[str]:
    """The kinds of filters that the list ``shown`` offers."""
    rows = [line.removeprefix("▸").strip() for line in shown.splitlines() if line.endswith("·")]
    return [row.removesuffix("·").strip() for row in rows]


ON_STACKS = ["only stacks with +", "without +", "from +", "hide +", "frameworks"]


async def test_a_trace_without_a_gpu_offers_no_filter_by_what_it_has_not(tmp_path: Path) -> None:
    bare = load(traces.host_only(tmp_path / "host.sqlite"))
    async with stage(dialog(bare)) as user:
        others = ["time", "NVTX range", "process", "thread", "minimum share"]
        assert titles(user.read()) == [*ON_STACKS, *others]


async def test_a_filter_that_cannot_apply_is_shown_where_it_is_set(tmp_path: Path) -> None:
    bare = load(traces.host_only(tmp_path / "host.sqlite"))
    async with stage(dialog(bare, Devices((3,)))) as user:
        await user.click("  device")
        assert "not in this trace" in user.line("device 3")
        await user.press("r", "enter", "a")
        assert user.result == ()


async def test_stacks_of_a_file_offer_what_can_be_said_of_them(stacks: Profile) -> None:
    async with stage(dialog(stacks, name="work", kind=Kind.FRAME)) as user:
        assert titles(user.read()) == [*ON_STACKS, "process", "thread", "minimum share"]
        await user.click("  thread")
        assert user.line("main [7]").split()[-3:] == ["75.0", "%", "30"]


async def test_operators_are_called_so_and_steps_are_offered(training: Profile) -> None:
    async with stage(dialog(training)) as user:
        assert "NVTX" not in user.read()
        assert titles(user.read())[5:8] == ["time", "steps", "operator"]
        await user.click("  operator")
        assert "below such an operator: NAME, * and ?" in user.read()
        await user.press("escape")
        await user.click("  steps")
        assert "3 of the PyTorch profiler" in user.read()
        await user.press("4", "space", "5", "space", "enter")
        assert user.line("steps  ").split()[-1] == "4–5"
        assert user.line("▸").startswith("▸  apply  1 filter")
        await user.press("enter")
        assert user.result == (Steps(((4, 5),)),)


async def test_the_list_of_steps_marks_those_chosen_and_may_take_them_all_away(
    training: Profile,
) -> None:
    async with stage(dialog(training, MinShare(1.0), Steps.of([4]))) as user:
        await user.click("  steps")
        assert "[x]    4" in user.line("▸")
        await user.press("escape")
        assert user.line("▸").split() == ["▸", "steps", "4"]
        await user.press("enter", "r")
        assert user.line("▸").startswith("▸  apply  1 filter")
        await user.press("enter")
        assert user.result == (MinShare(1.0),)


async def test_a_letter_goes_to_the_next_row_that_begins_with_it(profile: Profile) -> None:
    async with stage(dialog(profile)) as user:
        found = []
        for _ in range(3):
            await user.press("t")
            found.append(user.line("▸").split()[1])
        assert found == ["time", "thread", "time"]
        await user.press("r", "z")
        assert user.line("▸").split()[1] == "time"


# The list


@pytest.mark.parametrize("key", ["x", "delete", "backspace"])
async def test_x_removes_a_filter(profile: Profile, key: str) -> None:
    async with stage(dialog(profile, ShowStacks("a"), MinShare(1.0))) as user:
        await user.press(key, key)
        await user.press("a")
        assert user.result == (MinShare(1.0),)


async def test_r_removes_all(profile: Profile) -> None:
    async with stage(dialog(profile, ShowStacks("a"), MinShare(1.0))) as user:
        await user.press("r")
        assert "no filter" in user.line("apply  ")
        await user.press("a")
        assert user.result == ()


@pytest.mark.parametrize("key", ["escape", "q", "f"])
async def test_leaving_applies_nothing(profile: Profile, key: str) -> None:
    async with stage(dialog(profile, ShowStacks("a"))) as user:
        await user.press("x", key)
        assert user.result is None


async def test_letters_are_typed_where_text_is_asked_for(profile: Profile) -> None:
    async with stage(dialog(profile)) as user:
        await user.press("space", *"xraqfjk")
        assert user.entry == "xraqfjk"
        assert user.result is PENDING


async def test_the_apply_row_says_when_nothing_has_changed(profile: Profile) -> None:
    async with stage(dialog(profile, ShowStacks("a"))) as user:
        assert "1 filter, as before" in user.read()
        await user.press("x")
        assert "as before" not in user.read()
        await user.click(" apply ")
        assert user.result == ()


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_names_are_shown_and_typed_safely(profile: Profile, name: str) -> None:
    async with stage(dialog(profile, NvtxRange(name), name=name, kind=Kind.NVTX)) as user:
        for line in user.read().splitlines():
            assert line.isprintable() and len(line) <= 100
        await user.press("enter")
        assert user.entry is not None and user.entry.isprintable()


async def test_it_works_on_the_smallest_screen(profile: Profile) -> None:
    async with stage(dialog(profile), (60, 15)) as user:
        assert user.read().startswith("Filters: all of them hold")
        await user.press("pagedown", "pagedown")
        assert user.line("▸").startswith("▸  apply")
        await user.press("up", "space")
        assert user.entry == ""
        await user.press(*"2%", "enter", "enter")
        assert user.result == (MinShare(2.0),)


def test_the_dialog_offers_every_kind_of_filter() -> None:
    assert sorted(field.title for field in FIELDS) == sorted(kind.title for kind in FILTER_KINDS)


def test_names_that_nothing_has_are_doubted(tmp_path: Path) -> None:
    paths = [tmp_path / f"rank{number}.folded" for number in range(2)]
    for path in paths:
        path.write_text("a;train 5\nb 7\n")
    profile = name_phases(load_all(paths), parse_phases('{"training": ["train"]}'))
    for kind, known, why in (
        (Ranks, "rank*", "no trace is called that"),
        (Phases, "unm*", "no phase is called that"),
    ):
        [field] = [field for field in FIELDS if field.type is kind]
        assert isinstance(field, TextField) and field.applies(profile)
        assert field.doubt(profile, field.read(known)) == ""
        assert field.doubt(profile, field.read("other")) == why
    assert not PHASES_FIELD.applies(load(paths[0])), "stacks have no phases but those of a file"
    selected = SelectedName("a, b", Kind.PHASE)
    assert PHASES_FIELD.guess(selected) == "a? b"
    assert "training, unmapped" in PHASES_FIELD.about(profile)
