"""Ends of programs and of recordings: whatever CUPTI does, the program ends as it would."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.inject.cupti.cupti_recorded import KERNEL, PRELUDE, UNTIMED
from tests.inject.recorded_program import Program
from tests.inject.scenes import ENDED, RUNNING, STOPPED
from tests.support.waiting import PATIENCE
from tests.support.writers.fdumprecords import header, meta, records, text

COUNT = 20
LAUNCHES = f"""
context()
function = kernel("one", 1000)
for _ in range({COUNT}): check(launch(function))
synchronize()
"""
ENDLESS = """
check(launch(kernel("endless", 3600 * 10**9)))
"""
THREADS = """
def go_on():
    check(cuda.cuCtxSetCurrent(shared))
    check(launch(function))
    begun.release()
    while True: launch(function)
shared = make(cuda.cuCtxGetCurrent)
begun = threading.Semaphore(0)
for _ in range(3): threading.Thread(target=go_on, daemon=True).start()
for _ in range(3): begun.acquire()
synchronize()
"""
WAIT = f"""
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from tests.support.writers.fdumprecords import records
(dump,) = Path(os.environ["FLAME_DIR"]).glob("*.fdump")
while len(records(dump)["kernel"]) < {COUNT}: time.sleep(0.01)
"""
"""Until all of `LAUNCHES` has been flushed."""
ENDS = {
    "return": ("", 0),
    "sys.exit": ("sys.exit(7)", 7),
    "exception": ("raise RuntimeError", 1),
    "C exit": ("ctypes.CDLL(None).exit(9)", 9),
}
"""How a program can end so that its exit handlers run, and its exit code."""
CUT_OFF = {
    "os._exit": ("os._exit(5)", 5),
    "SIGINT": ("os.kill(os.getpid(), 2)", -signal.SIGINT),  # Python ends by the signal, too
    "SIGTERM": ("os.kill(os.getpid(), 15)", -signal.SIGTERM),
    "SIGKILL": ("os.kill(os.getpid(), 9)", -signal.SIGKILL),
}
"""And so that they do not."""
STUCK = {
    "flush_hang": "cuptiActivityFlushAll",
    "forced_hang": "a forced cuptiActivityFlushAll",
}


class Ended(NamedTuple):
    """A program that has ended, and its dump."""

    code: int
    dump: Path

    @property
    def kernels(self) -> list[str]:
        of = records(self.dump)
        return [text(of, int(row["symbol"])) for row in of["kernel"]]

    @property
    def lost(self) -> dict[tuple[int, int], int]:
        rows = records(self.dump)["drop"]
        return {(int(row["cause"]), int(row["type"])): int(row["count"]) for row in rows}

    @property
    def notes(self) -> list[str]:
        return meta(self.dump).get("note", [])


End = Callable[..., Ended]


@pytest.fixture
def end(injected_env: Callable[..., dict[str, str]], tmp_path: Path) -> End:
    """Run launches and then ``script``, with ``faults`` of CUPTI; wait for its end."""

    def run(script: str, faults: str = "", **more: str) -> Ended:
        env = injected_env(tmp_path / "dumps", FAKE_CUPTI=faults, FLAME_PYTHON="0", **more)
        command = [sys.executable, "-c", PRELUDE + LAUNCHES + script]
        done = subprocess.run(command, env=env, capture_output=True, timeout=PATIENCE, check=False)
        (dump,) = tmp_path.glob("dumps/*.fdump")
        return Ended(done.returncode, dump)

    return run


@pytest.mark.parametrize("how", ENDS)
def test_an_end_is_that_of_the_program_and_nothing_is_lost(end: End, how: str) -> None:
    script, code = ENDS[how]
    ended = end(script, faults="disable_deadlock")
    assert ended.code == code
    assert header(ended.dump)["state"] == ENDED and not header(ended.dump)["flags"]
    assert ended.kernels == ["one"] * COUNT and not ended.lost and not ended.notes


@pytest.mark.parametrize("how", CUT_OFF)
def test_an_end_without_handlers_leaves_what_was_flushed(end: End, how: str) -> None:
    script, code = CUT_OFF[how]
    ended = end(WAIT + script)
    assert ended.code == code
    assert header(ended.dump)["state"] == RUNNING
    assert ended.kernels == ["one"] * COUNT


def test_kernels_that_run_at_the_end_are_counted_and_not_waited_for(end: End) -> None:
    ended = end(ENDLESS + "sys.exit(3)", faults="hold,disable_deadlock")
    assert ended.code == 3
    assert ended.kernels == ["one"] * COUNT and ended.lost == {(UNTIMED, KERNEL): 1}


def test_threads_that_launch_on_do_not_keep_the_end(end: End) -> None:
    ended = end(THREADS + "sys.exit(4)", faults="disable_deadlock")
    assert ended.code == 4 and header(ended.dump)["state"] == ENDED
    of = records(ended.dump)
    assert len(of["kernel"]) > COUNT
    launched = set(of["launch"]["correlation"].tolist())
    assert len(launched) == len(of["launch"])
    # Whose call had begun and not ended when recording did has a kernel alone.
    alone = set(of["kernel"]["correlation"].tolist()) - launched
    assert len(alone) <= 3


@pytest.mark.deep
@pytest.mark.parametrize("fault", STUCK)
@pytest.mark.parametrize("how", ["sys.exit", "exception"])
def test_cupti_that_does_not_come_back_keeps_no_program(end: End, how: str, fault: str) -> None:
    script, code = ENDS[how]
    ended = end(script, faults=fault)  # and not after its limit of time
    assert ended.code == code and header(ended.dump)["state"] == ENDED
    assert len(records(ended.dump)["launch"]) == COUNT
    assert ended.kernels == (["one"] * COUNT if fault == "forced_hang" else [])
    [note] = ended.notes
    assert f"CUPTI did not come back from {STUCK[fault]} when" in note


def test_a_program_that_ends_with_its_last_thread_ends(end: End) -> None:
    ended = end("ctypes.CDLL(None).pthread_exit(None)")
    assert ended.code == 0 and header(ended.dump)["state"] == ENDED
    assert ended.kernels == ["one"] * COUNT and not ended.lost and not ended.notes


@pytest.mark.deep
def test_nor_does_it_keep_one_that_ends_with_its_last_thread(end: End) -> None:
    ended = end("ctypes.CDLL(None).pthread_exit(None)", faults="flush_hang")
    assert ended.code == 0 and header(ended.dump)["state"] == ENDED


CHILDREN = """
import multiprocessing

def work():
    import ctypes, os
    cuda = ctypes.CDLL("libcuda.so.1")
    def make(function, *arguments):
        made = ctypes.c_void_p()
        assert function(ctypes.byref(made), *arguments) == 0
        return made
    assert cuda.cuInit(0) == 0
    make(cuda.cuCtxCreate_v4, None, 0, 0)
    loaded = make(cuda.cuModuleLoadData, b"flame-fake 1\\nkernel child 1000")
    function = make(cuda.cuModuleGetFunction, loaded, b"child")
    for _ in range(20):
        assert cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None) == 0
    assert cuda.cuCtxSynchronize() == 0
    raise SystemExit(6)

if __name__ == "__main__":
    child = multiprocessing.get_context(METHOD).Process(target=work)
    child.start()
    child.join()
    raise SystemExit(child.exitcode)
"""


@pytest.mark.parametrize(
    "method", ["fork", "spawn", pytest.param("forkserver", marks=pytest.mark.deep)]
)
def test_children_end_as_they_would(
    injected_env: Callable[..., dict[str, str]], tmp_path: Path, method: str
) -> None:
    program = tmp_path / "program.py"
    program.write_text(CHILDREN.replace("METHOD", repr(method)))
    folder = tmp_path / "dumps"
    # Of a child that ends by os._exit, what was flushed is left: at the very first moment.
    env = injected_env(folder, FAKE_CUPTI="disable_deadlock", FLAME_FLUSH_MS="1")
    done = subprocess.run([sys.executable, program], env=env, timeout=PATIENCE, check=False)
    assert done.returncode == 6
    counts = {len(records(dump)["launch"]) for dump in folder.glob("*.fdump")}
    assert max(counts) == 20


@pytest.fixture
def start(
    injected_env: Callable[..., dict[str, str]], tmp_path: Path
) -> Iterator[Callable[..., Program]]:
    """Starts a program that has launched and goes on."""
    with ExitStack() as stack:

        def run(faults: str = "", **more: str) -> Program:
            env = injected_env(tmp_path / "dumps", FAKE_CUPTI=faults, FLAME_PYTHON="0", **more)
            return stack.enter_context(Program(PRELUDE + LAUNCHES, env))

        yield run


def stop(program: Program) -> Ended:
    """Stop the recording as `flame attach --stop` does, and let the program end."""
    with closing(program.control()) as control:
        assert control.stop()
    head = header(program.dump())
    assert (head["state"], head["flags"]) == (ENDED, STOPPED)
    assert program.do("launch(function)") == 0
    return Ended(program.end(), program.dump())


def test_a_stop_waits_for_kernels_that_run(start: Callable[..., Program]) -> None:
    program = start("hold")
    program.run("for _ in range(5): check(launch(kernel('longer', 40 * 10**6)))")
    ended = stop(program)
    assert ended.code == 0 and not ended.lost
    assert ended.kernels == ["one"] * COUNT + ["longer"] * 5


def test_a_stop_waits_for_no_kernel_for_ever_and_counts_it(start: Callable[..., Program]) -> None:
    program = start("hold")
    program.run("check(launch(kernel('endless', 3600 * 10**9)))")
    ended = stop(program)
    assert ended.kernels == ["one"] * COUNT and ended.lost == {(UNTIMED, KERNEL): 1}


def test_work_of_calls_after_a_stop_is_not_recorded(start: Callable[..., Program]) -> None:
    program = start("hold")
    program.run(
        "check(launch(kernel('longer', 100 * 10**6)))\n"
        "def go_on():\n"
        "    check(cuda.cuCtxSetCurrent(shared))\n"
        "    while True: launch(function); time.sleep(0.001)\n"
        "shared = make(cuda.cuCtxGetCurrent)\n"
        "threading.Thread(target=go_on, daemon=True).start()"
    )
    ended = stop(program)
    of = records(ended.dump)
    assert set(of["kernel"]["correlation"]) - set(of["launch"]["correlation"]) == set()
    assert "longer" in ended.kernels


@pytest.mark.deep
def test_a_stop_that_cupti_does_not_come_back_from_is_one(start: Callable[..., Program]) -> None:
    ended = stop(start("disable_deadlock"))
    assert ended.code == 0 and ended.kernels == ["one"] * COUNT
    [note] = ended.notes
    assert "CUPTI did not come back from cuptiActivityDisable when" in note
