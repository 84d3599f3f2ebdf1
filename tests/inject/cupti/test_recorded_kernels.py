"""Kernels, copies and sets of real programs on the test double, with where they were launched."""

from __future__ import annotations

from collections import Counter

import numpy as np

from tests.inject.cupti.cupti_recorded import FAILED, Record, by
from tests.support.writers.fdumprecords import text


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
