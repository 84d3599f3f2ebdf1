"""CUDA API calls and their call chains from an export."""

from __future__ import annotations

import pytest

from flame.core.model.frames import Frame
from flame.core.model.raw import RawTrace
from tests.core.conftest import Read
from tests.support.writers.nsysfile import NsysFile

BACKTRACE = 67
Symbol = tuple[str, str, bool]

LAUNCH = "cudaLaunchKernel"
SYNC = "cudaDeviceSynchronize"


def app(*names: str) -> list[Symbol]:
    """Resolved frames of the application, leaf first."""
    return [(name, "/usr/bin/app", False) for name in names]


def names(raw: RawTrace) -> list[str]:
    """The API name of every call."""
    return [raw.frames[frame].name for frame in raw.calls.frame.tolist()]


def stacks(raw: RawTrace, level: str = "native") -> list[list[Frame]]:
    """The frames of every call on one level, outermost first."""
    table = raw.stacks.build()
    ids = getattr(raw.calls, level).tolist()
    return [[raw.frames[frame] for frame in table.path(stack)] for stack in ids]


def spelled(raw: RawTrace, level: str = "native") -> list[list[str]]:
    return [[frame.name for frame in stack] for stack in stacks(raw, level)]


# -- calls ------------------------------------------------------------------------------------


def test_a_call_is_named_without_its_version(trace: NsysFile, read: Read) -> None:
    for name in ("cudaLaunchKernel_v7000", "cuLaunchKernelEx", "cudaLaunchKernel_v11060"):
        trace.api(name, 0, 1)
    raw = read(trace)
    assert names(raw) == [LAUNCH, "cuLaunchKernelEx", LAUNCH]
    assert raw.calls.frame[0] == raw.calls.frame[2]


def test_a_call_keeps_its_times_thread_and_correlation_id(trace: NsysFile, read: Read) -> None:
    trace.api(LAUNCH, -5, 8, corr=3, pid=100, tid=101)
    trace.api(LAUNCH, 9, 10, corr=None, pid=200, tid=201)
    raw = read(trace)
    calls = raw.calls
    assert (calls.start.tolist(), calls.end.tolist()) == ([-5, 9], [8, 10])
    assert calls.correlation.tolist() == [3, 0]
    assert [raw.threads[thread].tid for thread in calls.thread.tolist()] == [101, 201]


def test_a_call_whose_name_dangles_keeps_the_id(trace: NsysFile, read: Read) -> None:
    trace.api(777, 0, 1)
    assert names(read(trace)) == ["[API call with unknown name 777]"]


def test_a_call_without_a_name_id_says_so(trace: NsysFile, read: Read) -> None:
    trace.api(LAUNCH, 0, 1)
    trace.db.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME DROP COLUMN nameId")
    assert names(read(trace)) == ["[API call without a name]"]


def test_the_row_that_repeats_a_call_for_its_backtrace_is_marked(
    trace: NsysFile, read: Read
) -> None:
    trace.api("cudaLaunchKernel_v7000", 0, 10)
    trace.api(LAUNCH, 0, 10, event_class=BACKTRACE, chain=1)
    trace.api("cuLaunchKernel", 2, 9, event_class=1)
    assert read(trace).calls.chain_only.tolist() == [False, True, False]


def test_without_calls_there_are_none(trace: NsysFile, read: Read) -> None:
    assert names(read(trace)) == []


# -- chains -----------------------------------------------------------------------------------


def test_a_chain_is_turned_outermost_first(trace: NsysFile, read: Read) -> None:
    trace.api(LAUNCH, 0, 1, chain=1)
    trace.chain(1, app(LAUNCH, "at::mm", "main"))
    assert spelled(read(trace)) == [["main", "at::mm", LAUNCH]]


def test_the_depth_column_orders_frames_whatever_the_row_order(trace: NsysFile, read: Read) -> None:
    trace.api(LAUNCH, 0, 1, chain=1)
    trace.chain(1, app(LAUNCH, "at::mm", "main"))
    trace.db.execute("CREATE TABLE mixed AS SELECT * FROM CUDA_CALLCHAINS ORDER BY symbol DESC")
    trace.db.execute("DROP TABLE CUDA_CALLCHAINS")
    trace.db.execute("ALTER TABLE mixed RENAME TO CUDA_CALLCHAINS")
    assert spelled(read(trace)) == [["main", "at::mm", LAUNCH]]


def test_equal_chains_are_one_stack(trace: NsysFile, read: Read) -> None:
    for chain in (1, 2):
        trace.api(LAUNCH, 0, 1, chain=chain)
        trace.chain(chain, app(LAUNCH, "main"))
    assert len(set(read(trace).calls.native.tolist())) == 1


@pytest.mark.parametrize("chain", [None, 0, 99])
def test_no_chain_is_an_empty_stack(chain: int | None, trace: NsysFile, read: Read) -> None:
    trace.api(SYNC, 0, 1, chain=chain)
    trace.api(LAUNCH, 0, 1, chain=1)
    trace.chain(1, app(LAUNCH, "main"))
    assert spelled(read(trace)) == [[], ["main", LAUNCH]]


def test_zero_is_no_chain_even_where_a_chain_has_that_number(trace: NsysFile, read: Read) -> None:
    trace.api(SYNC, 0, 1, chain=0)
    trace.api(LAUNCH, 0, 1, chain=1)
    trace.chain(0, app("nobody's"))
    trace.chain(1, app(LAUNCH))
    assert spelled(read(trace)) == [[], [LAUNCH]]


def test_chain_ids_without_a_table_of_chains_lead_nowhere(trace: NsysFile, read: Read) -> None:
    trace.api(LAUNCH, 0, 1, chain=0)
    assert spelled(read(trace)) == [[]]
    trace.create("CUDA_CALLCHAINS")
    assert spelled(read(trace)) == [[]]


def test_a_runtime_table_without_chain_ids_is_fine(trace: NsysFile, read: Read) -> None:
    trace.api(LAUNCH, 0, 1)
    trace.chain(1, app(LAUNCH))
    trace.db.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_RUNTIME DROP COLUMN callchainId")
    assert spelled(read(trace)) == [[]]


# -- chain ids off by one ---------------------------------------------------------------------


def recorded(trace: NsysFile, first: int, chains: list[list[Symbol]]) -> None:
    """A launch and a synchronisation that refer to chains ``first`` and ``first + 1``."""
    for number, name in enumerate([LAUNCH, SYNC]):
        trace.api(name, number, number + 1, chain=first + number)
    for number, chain in enumerate(chains):
        trace.chain(number + 1, chain)


def test_ids_that_count_from_zero_are_off_by_one_and_said_so(trace: NsysFile, read: Read) -> None:
    recorded(trace, 0, [app(LAUNCH, "step"), app(SYNC, "wait")])
    raw = read(trace)
    assert spelled(raw) == [["step", LAUNCH], ["wait", SYNC]]
    (warning,) = [line for line in raw.warnings if "off by one" in line]
    assert "2 of 2 chains hold their call's own name (0 without)" in warning


def test_ids_that_count_from_one_are_joined_as_documented(trace: NsysFile, read: Read) -> None:
    recorded(trace, 1, [app(LAUNCH, "step"), app(SYNC, "wait")])
    raw = read(trace)
    assert spelled(raw) == [["step", LAUNCH], ["wait", SYNC]]
    assert not any("off by one" in line for line in raw.warnings)


def test_names_that_speak_against_the_correction_forbid_it(trace: NsysFile, read: Read) -> None:
    trace.api("cudaFree", 0, 1, chain=0)  # 0: none
    trace.api(LAUNCH, 1, 2, chain=1)
    trace.chain(1, app(LAUNCH, "step"))
    trace.chain(2, app(SYNC, "wait"))
    raw = read(trace)
    assert spelled(raw) == [[], ["step", LAUNCH]]
    assert not any("off by one" in line for line in raw.warnings)


def test_ids_from_zero_to_the_last_chain_are_not_off_by_one(trace: NsysFile, read: Read) -> None:
    trace.api("cudaFree", 0, 1, chain=0)
    recorded(trace, 1, [app("hidden", "step"), app("hidden", "wait")])
    assert spelled(read(trace)) == [[], ["step", "hidden"], ["wait", "hidden"]]


def test_ids_that_leave_out_the_last_chain_are_not_off_by_one(trace: NsysFile, read: Read) -> None:
    recorded(trace, 1, [app("hidden", "step"), app("hidden", "wait"), app("hidden", "unused")])
    assert spelled(read(trace)) == [["step", "hidden"], ["wait", "hidden"]]


# -- frames -----------------------------------------------------------------------------------


def test_frames_marked_as_python_are_a_level_of_their_own(trace: NsysFile, read: Read) -> None:
    trace.api(LAUNCH, 0, 1, chain=1)
    python = [("[Python] forward", "/src/model.py", False), ("[Python] main", "/src/run.py", False)]
    trace.chain(1, [*app(LAUNCH, "at::mm"), *python, *app("_start")])
    raw = read(trace)
    assert spelled(raw, "python") == [["main", "forward"]]
    assert spelled(raw, "native") == [["_start", "at::mm", LAUNCH]]
    assert [frame.file for frame in stacks(raw, "python")[0]] == ["/src/run.py", "/src/model.py"]


def test_a_python_frame_in_a_library_has_no_file(trace: NsysFile, read: Read) -> None:
    trace.api(LAUNCH, 0, 1, chain=1)
    trace.chain(1, [("[Python] step", "/lib/libpython3.so", False)])
    ((frame,),) = stacks(read(trace), "python")
    assert (frame.name, frame.file) == ("step", "")


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        (("at::mm", "/lib/libtorch.so", False), "at::mm"),
        (("0x7f00", "/lib/libcupti.so.12", True), "libcupti.so.12!0x7f00"),
        (("0x7f00", "C:\\cuda\\nvcuda.dll", True), "nvcuda.dll!0x7f00"),
        (("0x7f00", "", True), "?!0x7f00"),
        (("[Max depth]", "[Max depth]", False), "[Max depth]"),
    ],
)
def test_a_frame_that_was_not_resolved_names_its_library(
    symbol: Symbol, name: str, trace: NsysFile, read: Read
) -> None:
    trace.api(LAUNCH, 0, 1, chain=1)
    trace.chain(1, [symbol])
    ((frame,),) = stacks(read(trace))
    assert (frame.name, frame.get("module")) == (name, symbol[1])


def test_endless_chains_are_cut_and_said(trace: NsysFile, read: Read) -> None:
    trace.api(LAUNCH, 0, 1, chain=1)
    trace.chain(1, app(*(f"f{depth}" for depth in range(600, 0, -1))))
    raw = read(trace)
    (stack,) = spelled(raw)
    assert stack == [f"f{depth}" for depth in range(1, 501)]
    assert any(line.startswith("1 call chain has more than 500") for line in raw.warnings)
