"""Kernels whose records come late or never, and programs that fork or outlive their recording."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.inject.cupti.cupti_recorded import CUPTI_DROPPED, KERNEL, UNTIMED, Record, by
from tests.support.writers.fdumprecords import header, text

RING = 1 << 18  # driver calls whose origin is remembered


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


@pytest.mark.deep
def test_a_kernel_that_waited_too_long_is_never_given_another_stack(record: Record) -> None:
    recorded = record(
        f"""
context()
# It ends only when it is waited for, however long the launches take.
old = make(cuda.cuModuleGetFunction, module("kernel old 1000000", "waited old"), b"old")
new = kernel("new", 1)
waiting, busy = stream(), stream()
check(launch(old, waiting))
call, arguments = cuda.cuLaunchKernel, (new, 1, 1, 1, 1, 1, 1, 0, busy, None, None)
for _ in range({RING + 1000}): call(*arguments)
check(cuda.cuStreamSynchronize(waiting))
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
