"""Launches, kernels, copies, graphs and modules of real programs that run on the test double."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flame.core.loading.many import load
from flame.core.report.scope import Scope
from flame.core.report.sections.memory import memory_section
from flame.core.report.sections.syncs import syncs_section
from flame.core.timeline.idle_parts import IdleCause, idle_parts
from tests.support.report_rows import table_rows
from tests.support.waiting import PATIENCE
from tests.support.writers.fdumprecords import header, meta, records, stack, text

TIMEOUT_S = 2 * PATIENCE
RING = 1 << 18  # driver calls whose origin is remembered
KINDS = {"thread": 3, "device": 4, "api": 5}  # of Name records
SIZE_LIMIT, CUPTI_DROPPED, UNTIMED = 2, 3, 7
KERNEL, CALL, FAILED = 6, 16, 1

HELPERS = ("make", "launch")
PRELUDE = """
import ctypes, json, os, sys, threading, time
cuda = ctypes.CDLL("libcuda.so.1")
pointer = ctypes.c_void_p

def check(error):
    assert error == 0, error

def make(function, *arguments):
    made = pointer()
    check(function(ctypes.byref(made), *arguments))
    return made

def context(device=0):
    return make(cuda.cuCtxCreate_v4, None, 0, device)

def module(*lines):
    return make(cuda.cuModuleLoadData, "\\n".join(["flame-fake 1", *lines]).encode())

def kernel(name, duration=1000, more=""):
    return make(cuda.cuModuleGetFunction, module(f"kernel {name} {duration} {more}"), name.encode())

def launch(function, stream=None, grid=(1, 1, 1), block=(1, 1, 1), shared=0):
    return cuda.cuLaunchKernel(function, *grid, *block, shared, stream, None, None)

def stream():
    return make(cuda.cuStreamCreate, 1)

def synchronize():
    check(cuda.cuCtxSynchronize())

def say(**facts):
    print(json.dumps(facts), flush=True)

check(cuda.cuInit(0))
"""


@dataclass(frozen=True)
class Recorded:
    """A program that has been recorded: its dump, and what it said itself."""

    path: Path
    said: dict[str, Any]

    @property
    def of(self) -> dict[str, Any]:
        return records(self.path)

    @property
    def meta(self) -> dict[str, list[str]]:
        return meta(self.path)

    def top(self, node: int) -> str:
        """The innermost Python function of a stack that is the script's."""
        functions = [function for function, _, _ in stack(self.of, int(node))]
        return next(name for name in reversed(functions) if name not in HELPERS)

    def names(self, kind: str) -> dict[tuple[int, int], str]:
        """Names of one kind by scope and id."""
        of = self.of
        rows = of["name"][of["name"]["kind"] == KINDS[kind]]
        return {(int(row["scope"]), int(row["id"])): text(of, int(row["text"])) for row in rows}

    def apis(self, key: str = "launch") -> list[str]:
        """The names of the calls of a kind, by time."""
        names = self.names("api")
        rows = np.sort(self.of[key], order="start")
        return [names[0, int(number)] for number in rows["api"]]

    def dropped(self) -> dict[tuple[int, int], int]:
        """How many records have been dropped, by cause and type."""
        counts: Counter[tuple[int, int]] = Counter()
        for row in self.of["drop"]:
            counts[int(row["cause"]), int(row["type"])] += int(row["count"])
        return dict(counts)


Record = Callable[..., Recorded]


@pytest.fixture
def record(injected_env: Callable[..., dict[str, str]], tmp_path: Path) -> Record:
    """Runs a script after PRELUDE, recorded; the script must end well."""

    def run(script: str, before: str = "", **more: str | Path) -> Recorded:
        program = tmp_path / "program.py"
        program.write_text(before + PRELUDE + script)
        folder = tmp_path / "dumps"
        result = subprocess.run(
            [sys.executable, str(program)],
            env=injected_env(folder, **more),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert (result.returncode, result.stderr) == (0, "")
        (path,) = folder.glob("*.fdump")
        assert header(path)["state"] == 1
        return Recorded(path, json.loads(result.stdout or "{}"))

    return run


def by(rows: np.ndarray, field: str) -> dict[int, Any]:
    """The rows by a field that tells them apart."""
    found = {int(row[field]): row for row in rows}
    assert len(found) == len(rows)
    return found


def test_kernels_have_the_thread_and_stack_of_their_launch(record: Record) -> None:
    recorded = record("""
context_of_all = context()
first, second = kernel("first", 3000), kernel("second", 100)

def forward(on):
    check(launch(first, on))

def backward(on):
    check(launch(second, on))

def work(threads):
    check(cuda.cuCtxSetCurrent(context_of_all))
    streams = [None, stream(), stream()]
    for _ in range(100):
        for on in streams:
            forward(on)
            backward(on)
    threads.append(threading.get_native_id())

ids = []
threads = [threading.Thread(target=work, args=(ids,)) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
synchronize()
say(threads=ids)
""")
    of = recorded.of
    launches, kernels = by(of["launch"], "correlation"), by(of["kernel"], "correlation")
    assert launches.keys() == kernels.keys() and len(kernels) == 4 * 100 * 3 * 2
    assert Counter(of["kernel"]["tid"].tolist()) == dict.fromkeys(recorded.said["threads"], 600)
    for correlation, row in kernels.items():
        launch = launches[correlation]
        for field in ("tid", "python", "symbol", "context"):
            assert row[field] == launch[field]
        assert launch["start"] < launch["end"] and launch["start"] < row["start"] < row["end"]
    functions = {"first": "forward", "second": "backward"}
    for python, symbol in set(of["kernel"][["python", "symbol"]].tolist()):
        assert recorded.top(python) == functions[text(of, symbol)]
    assert set(recorded.apis()) == {"cuLaunchKernel"}


def test_a_kernel_is_described_in_full(record: Record) -> None:
    recorded = record("""
context()
function = kernel("dressed", 7000, "48 1024 16")
on = stream()
check(launch(function, on, (70000, 2, 3), (32, 4, 5), 256))
synchronize()
""")
    (row,) = recorded.of["kernel"]
    size = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
    assert [int(row[field]) for field in size] == [70000, 2, 3, 32, 4, 5]
    memory = ("registers", "static_shared", "dynamic_shared", "local")
    assert [int(row[field]) for field in memory] == [48, 1024, 256, 16]
    assert row["end"] - row["start"] == 7000
    assert text(recorded.of, int(row["symbol"])) == "dressed"
    assert (row["graph"], row["graph_node"], row["flags"]) == (0, 0, 0)


def test_a_failed_launch_is_recorded_as_such(record: Record) -> None:
    recorded = record("""
context()
good, bad = kernel("good"), kernel("fail_bad")
check(launch(good))
assert launch(bad) != 0
synchronize()
""")
    of = recorded.of
    flags = {text(of, int(row["symbol"])): int(row["flags"]) for row in of["launch"]}
    launch_failed = 719  # CUDA_ERROR_LAUNCH_FAILED, in the bits above
    # CUPTI does not say that the name of a call that fails is one.
    assert flags == {"good": 0, "": FAILED | launch_failed << 1}
    assert [text(of, int(row["symbol"])) for row in of["kernel"]] == ["good"]


def test_copies_and_sets(record: Record) -> None:
    recorded = record("""
context()
def allocate(size):
    return make(cuda.cuMemAlloc_v2, ctypes.c_size_t(size))
host = ctypes.create_string_buffer(4096)
one, other = allocate(4096), allocate(4096)
size = ctypes.c_size_t
def upload(): check(cuda.cuMemcpyHtoD_v2(one, host, size(4096)))
def inside(): check(cuda.cuMemcpyDtoDAsync_v2(other, one, size(2048), None))
def download(): check(cuda.cuMemcpyDtoH_v2(host, other, size(1024)))
def clear(): check(cuda.cuMemsetD32Async(one, 0, size(100), None))
upload(); inside(); download(); clear()
synchronize()
""")
    of = recorded.of
    found = [
        (
            recorded.top(row["python"]),
            *(int(row[field]) for field in ("kind", "copy_kind", "bytes")),
        )
        for row in np.sort(of["memop"], order="start")
    ]
    assert found == [
        ("upload", 0, 1, 4096),
        ("inside", 0, 8, 2048),
        ("download", 0, 2, 1024),
        ("clear", 1, 0, 400),
    ]
    pageable, device = 1, 3
    ends = [(int(row["source"]), int(row["target"])) for row in np.sort(of["memop"], order="start")]
    assert ends == [(pageable, device), (device, device), (device, pageable), (0, device)]
    assert by(of["memop"], "correlation").keys() == by(of["launch"], "correlation").keys()
    apis = {"cuMemcpyHtoD_v2", "cuMemcpyDtoDAsync_v2", "cuMemcpyDtoH_v2", "cuMemsetD32Async"}
    assert set(recorded.apis()) == apis
    assert not of["launch"]["symbol"].any()


GRAPH = """
context()
first, second = kernel("first"), kernel("second")
on = stream()

def layer_one(): check(launch(first, on))
def layer_two():
    check(launch(second, on))
    check(cuda.cuMemsetD32Async(memory, 0, ctypes.c_size_t(10), on))
memory = make(cuda.cuMemAlloc_v2, ctypes.c_size_t(4096))
def capture():
    check(cuda.cuStreamBeginCapture_v2(on, 0))
    layer_one()
    layer_two()
    return make(lambda graph: cuda.cuStreamEndCapture(on, graph))
def instantiate(graph):
    return make(cuda.cuGraphInstantiateWithFlags, graph, ctypes.c_ulonglong(0))
def replay(graph):
    check(cuda.cuGraphLaunch(graph, on))
"""


def test_nodes_of_a_graph_lead_back_to_where_they_were_captured(record: Record) -> None:
    recorded = record(f"""{GRAPH}
graph = instantiate(capture())
for _ in range(3): replay(graph)
synchronize()
""")
    of = recorded.of
    nodes = by(of["graph_node"], "node")
    captured = {node: row for node, row in nodes.items() if not row["original"]}
    assert len(captured) == 3 and len(nodes) == 6
    made_in: dict[int, str] = {}
    for node, row in nodes.items():
        if row["original"]:
            made_in[node] = recorded.top(captured[int(row["original"])]["python"])
            assert recorded.top(row["python"]) == "instantiate"
    work = [*of["kernel"], *of["memop"]]
    assert Counter(made_in[int(row["graph_node"])] for row in work) == {
        "layer_one": 3,
        "layer_two": 6,
    }
    assert {recorded.top(row["python"]) for row in work} == {"replay"}
    replays = [row for row in of["launch"] if recorded.top(row["python"]) == "replay"]
    correlations = Counter(int(row["correlation"]) for row in work)
    assert correlations == {int(row["correlation"]): 3 for row in replays}
    # What was captured did not run: only the replays did.
    assert len(of["launch"]) == 3 + 3 and len(work) == 9


def test_nodes_that_are_added_by_hand(record: Record) -> None:
    recorded = record(f"""{GRAPH}
class Parameters(ctypes.Structure):
    _fields_ = [("function", pointer), ("size", ctypes.c_uint * 7), ("arguments", pointer),
                ("extra", pointer), ("kernel", pointer), ("context", pointer)]
def by_hand():
    graph = make(cuda.cuGraphCreate, 0)
    wanted = Parameters(first, (2, 1, 1, 32, 1, 1, 0))
    make(cuda.cuGraphAddEmptyNode, graph, None, ctypes.c_size_t(0))
    add = cuda.cuGraphAddKernelNode_v2
    node = pointer()
    check(add(ctypes.byref(node), graph, None, ctypes.c_size_t(0), ctypes.byref(wanted)))
    return graph
replay(instantiate(by_hand()))
synchronize()
""")
    of = recorded.of
    made, clone = of["graph_node"]
    assert (int(made["original"]), clone["original"]) == (0, made["node"])
    assert recorded.top(made["python"]) == "by_hand" and made["graph"] != clone["graph"]
    (row,) = of["kernel"]
    assert (row["graph_node"], row["graph"]) == (clone["node"], clone["graph"])


def test_contexts_and_devices(record: Record) -> None:
    recorded = record(
        """
contexts = [context(device) for device in (0, 1, 1)]
for each in contexts:
    check(cuda.cuCtxSetCurrent(each))
    check(launch(kernel("one")))
    synchronize()
""",
        FAKE_DEVICES="2",
    )
    of = recorded.of
    places = sorted(of["kernel"][["context", "device"]].tolist())
    assert places == [(1, 0), (2, 1), (3, 1)]
    assert recorded.names("device") == {(0, 0): "Simulated GPU 0", (0, 1): "Simulated GPU 1"}
    assert sorted(of["launch"]["context"].tolist()) == [1, 2, 3]
    assert of["module"]["context"].tolist() == [1, 2, 3]


def test_threads_with_names_of_their_own(record: Record) -> None:
    recorded = record("""
context_of_all = context()
function = kernel("one")
ids = {}
def work(name):
    if name:
        check(ctypes.CDLL(None).prctl(15, name.encode()))
    check(cuda.cuCtxSetCurrent(context_of_all))
    check(launch(function))
    ids[name] = threading.get_native_id()
for name in ("loader", ""):
    thread = threading.Thread(target=work, args=(name,))
    thread.start()
    thread.join()
synchronize()
say(named=ids["loader"])
""")
    by_system = 1
    # From 3.14 on CPython gives the others names as well.
    names = {key: name for key, name in recorded.names("thread").items() if "(work)" not in name}
    assert names == {(by_system, recorded.said["named"]): "loader"}


def test_dropped_records_are_counted(record: Record) -> None:
    recorded = record(
        """
context()
function = kernel("one", 10)
for _ in range(1000): check(launch(function))
synchronize()
""",
        FAKE_CUPTI="drop:7",
    )
    lost = 1000 // 7
    assert len(recorded.of["launch"]) == 1000 and len(recorded.of["kernel"]) == 1000 - lost
    assert recorded.dropped() == {(CUPTI_DROPPED, 0): lost}
    assert header(recorded.path)["dropped"] == lost


def test_a_kernel_that_still_runs_at_the_end_is_counted_as_lost(record: Record) -> None:
    recorded = record("""
context()
check(launch(kernel("short", 1000)))
synchronize()
check(launch(kernel("endless", 3600 * 10**9)))
""")
    of = recorded.of
    assert [text(of, int(row["symbol"])) for row in of["kernel"]] == ["short"]
    assert len(of["launch"]) == 2
    assert recorded.dropped() == {(UNTIMED, KERNEL): 1}


def test_a_call_within_another_is_part_of_it_and_its_kernel_has_the_stack_of_both(
    record: Record,
) -> None:
    recorded = record(
        """
context()
function = kernel("one", 1000)
def forward(): check(launch(function))
for _ in range(20): forward()
synchronize()
""",
        FAKE_CUPTI="nested",
    )
    of = recorded.of
    assert (len(of["launch"]), len(of["kernel"])) == (20, 20)
    assert {recorded.top(row["python"]) for row in of["launch"]} == {"forward"}
    assert {recorded.top(row["python"]) for row in of["kernel"]} == {"forward"}
    # A kernel goes by the inner call, which begins next after the outer one.
    assert sorted(of["kernel"]["correlation"] - 1) == sorted(of["launch"]["correlation"])


BLOCKING = """
context()
# However busy the machine is, most of each wait passes while the kernel runs.
function = make(cuda.cuModuleGetFunction, module("kernel one 3000000", "waited one"), b"one")
def allocate(): return make(cuda.cuMemAlloc_v2, ctypes.c_size_t(4096))
def wait():
    check(launch(function))
    check(cuda.cuStreamSynchronize(None))
def poll():
    for _ in range(5): cuda.cuStreamQuery(None)
memory = allocate()
for _ in range(3): wait()
poll()
check(cuda.cuMemFree_v2(memory))
assert cuda.cuMemFree_v2(memory) != 0
"""


def test_calls_that_may_block_are_recorded_with_their_stack_and_result(record: Record) -> None:
    recorded = record(BLOCKING)
    assert recorded.meta["calls"] == ["recorded"]
    waits = 3 * ["cuStreamSynchronize"]
    found = recorded.apis("call")
    assert found == ["cuModuleLoadData", "cuMemAlloc_v2", *waits, *2 * ["cuMemFree_v2"]]
    calls = np.sort(recorded.of["call"], order="start")
    assert calls["result"].tolist() == [0, 0, 0, 0, 0, 0, 1]
    assert [recorded.top(row["python"]) for row in calls[1:5]] == ["allocate", *3 * ["wait"]]
    assert set(calls["context"].tolist()) == {1} and len(set(calls["tid"].tolist())) == 1
    # The kernel runs for 3 ms from when it is waited for.
    assert (calls["end"] - calls["start"])[2:5].min() > 2_000_000
    assert recorded.apis() == 3 * ["cuLaunchKernel"]


@pytest.mark.deep
def test_calls_for_which_there_is_no_room_are_counted(record: Record) -> None:
    number = 60_000
    recorded = record(
        f"context()\nfor _ in range({number}): cuda.cuMemFree_v2(None)\n", FLAME_MAX_MB="1"
    )
    kept = len(recorded.of["call"])
    assert 1_000 < kept < number
    assert recorded.dropped() == {(SIZE_LIMIT, CALL): number - kept}
    assert header(recorded.path)["dropped"] == number - kept
    lost = f"{number - kept:,} records could not be written"
    assert any(line.startswith(lost) for line in load(recorded.path).warnings)


def test_a_report_of_a_recording_tells_of_waits_and_allocations(record: Record) -> None:
    recorded = record(BLOCKING)
    scope = Scope(load(recorded.path))
    waits, memory = syncs_section(scope), memory_section(scope)
    calls = np.sort(recorded.of["call"], order="start")
    lengths = (calls["end"] - calls["start"]).tolist()
    assert (waits.facts["count"], waits.facts["total_ns"]) == (3, sum(lengths[2:5]))
    assert (memory.facts["calls"], memory.facts["total_ns"]) == (
        3,
        lengths[1] + sum(lengths[5:]),
    )
    (row,) = table_rows(waits, "rows")
    # Each wait begins while the kernel that was launched before it runs, or before that starts.
    assert row["name"] == "cuStreamSynchronize"
    assert row["while_busy_ns"] > sum(lengths[2:5]) / 2
    (gpu,) = idle_parts(scope.profile)
    kernels = np.sort(recorded.of["kernel"], order="start")
    gaps = int((kernels["start"][1:] - kernels["end"][:-1]).sum())
    first = int(kernels["end"][0]) - header(recorded.path)["start_monotonic"]
    last = int(kernels["start"][-1]) - header(recorded.path)["start_monotonic"]
    between = (gpu.low >= first) & (gpu.high <= last)
    length = gpu.high - gpu.low
    assert length[between].sum() == gaps
    assert 0 < length[between & (gpu.cause == IdleCause.SYNC)].sum() < gaps


def test_calls_that_may_block_are_left_out_where_nobody_wants_them(record: Record) -> None:
    recorded = record(BLOCKING, FLAME_CALLS="0")
    assert recorded.meta["calls"] == ["switched off by FLAME_CALLS=0"]
    assert recorded.apis() == 3 * ["cuLaunchKernel"]
    assert not len(recorded.of["call"])
    assert set(recorded.names("api").values()) == {"cuLaunchKernel"}
    section = syncs_section(Scope(load(recorded.path)))
    assert section.why == "launches alone were recorded (switched off by FLAME_CALLS=0)"


@pytest.mark.parametrize("calls", ["0", "1"])
def test_a_launch_within_a_call_that_may_block_is_recorded_all_the_same(
    record: Record, calls: str
) -> None:
    recorded = record(
        """
context()
function = kernel("one", 1000)
def forward(): check(launch(function))
for _ in range(20): forward()
synchronize()
""",
        FAKE_CUPTI="allocating",
        FLAME_CALLS=calls,
    )
    of = recorded.of
    assert recorded.apis() == 20 * ["cuLaunchKernel"]
    assert set(of["kernel"]["correlation"]) == set(of["launch"]["correlation"])
    assert {recorded.top(row["python"]) for row in of["kernel"]} == {"forward"}
    within = [recorded.names("api").get((0, int(flags) >> 16)) for flags in of["launch"]["flags"]]
    if calls == "0":
        assert within == 20 * [None]
        return
    assert within == 20 * ["cuMemAllocAsync"]
    around = np.sort(of["call"], order="start")[1:-1]
    launches = np.sort(of["launch"], order="start")
    assert recorded.apis("call")[1:-1] == within
    assert (around["start"] <= launches["start"]).all() and (launches["end"] <= around["end"]).all()


def test_calls_that_were_not_asked_for_are_none(record: Record) -> None:
    recorded = record(
        """
context()
function = kernel("one", 1000)
check(launch(function))
synchronize()
""",
        FAKE_CUPTI="unasked",
    )
    assert recorded.apis() == ["cuLaunchKernel"]
    assert recorded.apis("call") == ["cuModuleLoadData", "cuCtxSynchronize"]


@pytest.mark.deep
def test_a_kernel_that_waited_too_long_is_never_given_another_stack(record: Record) -> None:
    recorded = record(
        f"""
context()
old, new = kernel("old", 3 * 10**9), kernel("new", 1)
waiting, busy = stream(), stream()
check(launch(old, waiting))
call, arguments = cuda.cuLaunchKernel, (new, 1, 1, 1, 1, 1, 1, 0, busy, None, None)
for _ in range({RING + 1000}): call(*arguments)
synchronize()
""",
        FLAME_FLUSH_MS="20",
    )
    of = recorded.of
    old = of["kernel"][[text(of, int(number)) == "old" for number in of["kernel"]["symbol"]]]
    assert old[["tid", "python", "nvtx"]].tolist() == [(0, 0, 0)]
    launch = by(of["launch"], "correlation")[int(old["correlation"][0])]
    assert launch["tid"] and launch["python"]
    rest = of["kernel"][of["kernel"]["tid"] != 0]
    assert len(rest) == RING + 1000 and not recorded.dropped()
    places = set(rest[["tid", "python"]].tolist())
    assert len(places) == 1


def test_no_clock_of_ours(record: Record) -> None:
    recorded = record(
        """
context()
function = kernel("one", 2000)
for _ in range(50): check(launch(function))
synchronize()
""",
        FAKE_CUPTI="no_timestamps",
    )
    assert any("clock" in said for said in recorded.meta["note"])
    launches, kernels = by(recorded.of["launch"], "correlation"), recorded.of["kernel"]
    assert len(kernels) == 50
    for row in kernels:
        # A few microseconds, and what waits before it; what is more is the conversion's error.
        waited = int(row["start"]) - int(launches[int(row["correlation"])]["start"])
        assert -1_000_000 < waited < 50_000_000


@pytest.mark.parametrize(
    ("said", "version"), [("130001", "13.0.1"), ("28", "12.9.1"), ("19", "12.0"), ("25", "API 25")]
)
def test_versions(record: Record, said: str, version: str) -> None:
    recorded = record(
        """
context()
for _ in range(10): check(launch(kernel("one", 1000), None, (3, 2, 1)))
synchronize()
""",
        FAKE_CUPTI=f"version:{said}",
    )
    assert recorded.meta["cupti"] == [version]
    kernels = recorded.of["kernel"]
    assert len(kernels) == 10 and set(kernels["grid_x"]) == {3}
    assert (kernels["end"] - kernels["start"] == 1000).all() and kernels["tid"].all()


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({"FLAME_CUPTI_PATH": "/nowhere/libcupti.so.13"}, "FLAME_CUPTI_PATH"),
        ({"FLAME_CUPTI_PATH": "libm.so.6"}, "too old: no cupti"),
        ({"FAKE_CUPTI": "version:17"}, "older than 11.8"),
        ({"FAKE_CUPTI": "no_subscriber"}, "cuptiSubscribe: CUPTI_ERROR_MULTIPLE_SUB"),
    ],
)
def test_without_cupti_the_program_runs_and_the_dump_says_why(
    record: Record, environment: dict[str, str], why: str
) -> None:
    recorded = record(
        """
context()
check(launch(kernel("one")))
synchronize()
""",
        **environment,
    )
    (said,) = recorded.meta["cupti"]
    assert why in said
    assert recorded.meta["driver"] == ["12.9" if "version" in str(environment) else "13.0"]
    assert not len(recorded.of["launch"]) and not len(recorded.of["kernel"])


def test_who_has_cupti_instead_is_noted(record: Record) -> None:
    recorded = record("context()", FAKE_CUPTI="no_subscriber")
    assert any("another tool uses CUPTI" in said for said in recorded.meta["note"])


READ_HEADER = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from tests.support.writers.fdumprecords import header
"""


def test_recording_that_ends_before_the_program(record: Record) -> None:
    recorded = record(
        """
context()
function = kernel("one", 10)
(dump,) = Path(os.environ["FLAME_DIR"]).glob("*.fdump")
count = 0
while not header(dump)["flags"] & 2:
    check(launch(function))
    count += 1
    time.sleep(0.001)
check(launch(function))
synchronize()
say(launched=count + 1)
""",
        before=READ_HEADER,
        FLAME_DURATION_MS="2000",
    )
    of, head = recorded.of, header(recorded.path)
    assert head["flags"] & 2
    assert 0 < len(of["launch"]) < recorded.said["launched"]
    assert (of["launch"]["start"] <= head["end_monotonic"]).all()
    lost = recorded.dropped().get((CUPTI_DROPPED, KERNEL), 0)
    assert abs(len(of["launch"]) - len(of["kernel"]) - lost) <= 1  # one may be between the two


def test_a_forked_child_does_no_harm(record: Record) -> None:
    recorded = record("""
context()
function = kernel("one")
check(launch(function))
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # CPython 3.12: of forks beside threads
child = os.fork()
if child == 0:
    failed = launch(function) != 0
    sys.exit(0 if failed else 1)
assert os.waitpid(child, 0)[1] == 0
check(launch(function))
synchronize()
""")
    assert len(recorded.of["launch"]) == len(recorded.of["kernel"]) == 2


def test_modules_are_told_and_not_saved_without_sampling(record: Record) -> None:
    recorded = record("""
context()
kernel("one"); kernel("one"); kernel("another")
""")
    of = recorded.of
    first, again, another = of["module"]
    assert first["crc"] == again["crc"] != another["crc"] and first["crc"]
    assert first["hash"] == again["hash"] != another["hash"] and first["hash"]
    assert first["size"] == len("flame-fake 1\nkernel one 1000 ")
    assert not of["module"]["path"].any()
    assert not (recorded.path.parent / "cubins").exists()


def test_unloaded_modules_are_told(record: Record) -> None:
    of = record("""
context()
first, second = module("kernel one 1"), module("kernel two 1")
check(cuda.cuModuleUnload(first))
""").of
    [ended] = of["module_end"]
    first, second = of["module"]
    assert (ended["module"], ended["context"]) == (first["module"], first["context"])
    assert first["module"] != second["module"] and first["context"]
    assert first["time"] < second["time"] < ended["time"]


def test_modules_are_saved_once_for_sampling(record: Record) -> None:
    recorded = record(
        """
context()
kernel("one"); kernel("one"); kernel("another")
""",
        FLAME_PC="serialized",
    )
    of = recorded.of
    paths = [text(of, int(row["path"])) for row in of["module"]]
    expected = [f"cubins/{row['crc']:016x}-{row['hash']:016x}.cubin" for row in of["module"]]
    assert paths == expected
    saved = sorted((recorded.path.parent / "cubins").iterdir())
    assert [path.name for path in saved] == sorted({Path(path).name for path in paths})
    assert {path.stat().st_mode & 0o777 for path in saved} == {0o600}
    content = (recorded.path.parent / paths[0]).read_bytes()
    assert content == b"flame-fake 1\nkernel one 1000 "


def test_cubins_are_not_written_through_a_link(record: Record, tmp_path: Path) -> None:
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "dumps"
    for made in (elsewhere, folder):
        made.mkdir(mode=0o700)
    (folder / "cubins").symlink_to(elsewhere)
    recorded = record("context()\nkernel('one')", FLAME_PC="serialized")
    assert not list(elsewhere.iterdir())
    assert not recorded.of["module"]["path"].any()
    assert any("could not be saved" in said for said in recorded.meta["note"])
