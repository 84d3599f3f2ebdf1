"""What the library counts of its own doings, against what the program and its double did."""

from __future__ import annotations

import json

from flame.console.info import as_json, as_text
from flame.core.loading.inputs import Inputs
from flame.core.loading.many import load
from tests.inject.cupti.cupti_recorded import Record, Recorded

LAUNCHES = """
context()
function = kernel("one", 10)
for _ in range(100): check(launch(function))
synchronize()
"""


def counters(recorded: Recorded) -> dict[str, int]:
    [value] = recorded.meta["counters"]
    counts: dict[str, int] = json.loads(value)
    return counts


def test_calls_and_records_are_counted_over_all_threads(record: Record) -> None:
    found = counters(
        record("""
shared = context()
function = kernel("one", 10)

def work():
    check(cuda.cuCtxSetCurrent(shared))
    for _ in range(100): check(launch(function))

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
target = make(cuda.cuMemAlloc_v2, 64)
for _ in range(7): check(cuda.cuMemsetD8_v2(target, 0, 64))
synchronize()
""")
    )
    assert found["kernel_calls"] == found["kernel_records"] == 400
    assert found["work_calls"] == found["set_records"] == 7
    assert found["host_calls"] == 3  # module, allocation, synchronization
    assert found["resource_callbacks"] == 2  # context, module
    assert found["copy_records"] == found["other_records"] == found["graph_copies"] == 0
    for strange in ("untimed_records", "records_without_call", "starts_before_call"):
        assert found[strange] == 0
    assert found["flushes"] >= 1 and found["completed_buffers"] >= 1
    assert found["longest_callback_ns"] > 0


def test_records_without_times_are_counted(record: Record) -> None:
    found = counters(record(LAUNCHES + "check(launch(kernel('endless', 3600 * 10**9)))"))
    assert found["untimed_records"] == 1 and found["kernel_records"] == 101


def test_info_tells_them_all_and_in_words_what_is_unusual(record: Record) -> None:
    recorded = record(LAUNCHES, FAKE_CUPTI="stray:10")
    profile, inputs = load(recorded.path), Inputs((recorded.path,), "one")
    [source] = json.loads(as_json(profile, inputs))["sources"]
    assert source["counters"] == counters(recorded)
    assert "10 records of GPU work without their call\n" in as_text(profile, inputs)


def test_work_of_calls_that_were_not_seen_is_counted(record: Record) -> None:
    found = counters(record(LAUNCHES, FAKE_CUPTI="stray:7"))
    assert found["records_without_call"] == 100 // 7


def test_work_that_began_before_its_call_is_counted(record: Record) -> None:
    """As by a GPU's clock that is told with an error."""
    found = counters(record(LAUNCHES, FAKE_CUPTI="early:3"))
    assert found["starts_before_call"] == 100 // 3


def test_buffers_are_counted(record: Record) -> None:
    found = counters(record(LAUNCHES, FAKE_CUPTI="hoard,per_buffer:5"))
    assert found["completed_buffers"] == found["most_buffers"] == 20
    assert found["null_buffers"] == 0


BUSY = """
context()
function = kernel("one", 10)
check(launch(kernel("waits", 3600 * 10**9), stream()))
"""
"""Work always waits on the GPU: a buffer comes back when it is full, and no sooner."""


def test_buffers_are_small_while_little_is_launched(record: Record) -> None:
    """With 700 kernels of 208 bytes two of 64 KiB are full, and one of 256 KiB is not."""
    script = BUSY + "for _ in range(700): check(launch(function)); time.sleep(0.001)"
    found = counters(record(script, FAKE_CUPTI="hold", FLAME_PYTHON="0"))
    assert found["completed_buffers"] == 3


def test_buffers_are_large_while_much_is_launched(record: Record) -> None:
    """A small one holds 315 kernels; those are until the rate of five or so periods is known.

    So many launches take some, however late the program gets its turn.
    """
    script = (
        BUSY
        + """
end, launched = time.monotonic() + 0.5, 1
while time.monotonic() < end or launched < 200_000:
    for _ in range(10_000): launch(function)
    launched += 10_000
say(launched=launched)
"""
    )
    recorded = record(script, FAKE_CUPTI="hold", FLAME_PYTHON="0")
    assert counters(recorded)["completed_buffers"] < recorded.said["launched"] // 315


def test_buffers_are_large_while_many_are_out(record: Record) -> None:
    """The first 65 are small; what 100,000 kernels of 208 bytes need besides are 64 large ones."""
    script = BUSY + "for _ in range(100_000): launch(function)"
    found = counters(record(script, FAKE_CUPTI="hoard", FLAME_PYTHON="0"))
    assert 100 < found["completed_buffers"] < 140


def test_where_nothing_is_counted_nothing_is_told(record: Record) -> None:
    assert "counters" not in record("", FAKE_CUPTI="no_subscriber").meta


def test_a_forked_child_counts_its_own(record: Record) -> None:
    script = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # CPython 3.12: of forks beside threads
child = os.fork()
if child == 0:
    for _ in range(5): launch(function)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    assert counters(record(LAUNCHES + script))["kernel_calls"] == 100
