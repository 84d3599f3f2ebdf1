"""The library loaded into a process that has been running for a while, and uses CUDA already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.programs import KERNELS
from tests.inject.recorded_program import Program
from tests.support.writers.fdumprecords import header, meta, records, stack, text

LATE = """
import threading

def attach(loader, path, folder):
    global library
    library = loader(path)
    return library.flame_attach(folder and folder.encode())

def train(count):
    for _ in range(count):
        launch(gemm)
    call("cuCtxSynchronize")

def in_thread(count):
    def work():
        call("cuCtxSetCurrent", context)
        train(count)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

def attach_often(path, *folders):
    def work(folder):
        attach(ctypes.CDLL, path, folder)
    threads = [threading.Thread(target=work, args=(one,)) for one in folders * 5]
    for thread in threads:
        thread.start()
    train(100)
    for thread in threads:
        thread.join()

def load_another():
    global module
    other = ctypes.c_void_p()
    call("cuModuleLoadData", ctypes.byref(other), IMAGE)
    module = other
    launch(function_of(b"softmax"))
    call("cuCtxSynchronize")
"""
DEVICE = 4  # kind of a name

Start = Callable[..., Program]


@pytest.fixture
def start(injected_env: Callable[..., dict[str, str]], tmp_path: Path) -> Iterator[Start]:
    """Starts a program on the double, which knows nothing of the library unless ``injected``."""
    with ExitStack() as opened:

        def run(injected: bool = False, **more: str) -> Program:
            env = injected_env(tmp_path / "dumps", **more)
            if not injected:
                del env["CUDA_INJECTION64_PATH"], env["NVTX_INJECTION64_PATH"]
            return opened.enter_context(Program(KERNELS + LATE, env))

        yield run


def attach(program: Program, library: Path, folder: Path | str = "", loader: str = "CDLL") -> int:
    found: int = program.do(f"attach(ctypes.{loader}, {str(library)!r}, {str(folder)!r})")
    return found


@pytest.mark.parametrize("loader", ["CDLL", "PyDLL"])
def test_what_is_launched_from_now_on_is_recorded(start: Start, library: Path, loader: str) -> None:
    # PyDLL keeps the GIL, which whoever checks the frames has to have.
    program = start()
    assert not program.folder.exists()
    assert attach(program, library, loader=loader) == 1
    program.run("train(100)")
    program.run("in_thread(50)")
    with closing(program.control()) as control:
        status = control.status()
        assert status is not None and status.recording and status.cupti and status.python
    assert program.end() == 0
    dump = program.dump()
    of = records(dump)
    assert header(dump)["state"] == 1
    assert len(of["launch"]) == len(of["kernel"]) == 150
    assert {text(of, int(symbol)) for symbol in of["kernel"]["symbol"]} == {"gemm"}
    stacks = [functions(of, row) for row in of["kernel"]]
    assert all(one[-3:] == ("train", "launch", "call") for one in stacks)
    assert Counter("in_thread.<locals>.work" in one for one in stacks) == {True: 50, False: 100}
    assert sorted(Counter(of["kernel"]["tid"].tolist()).values()) == [50, 100]


def functions(of: dict[str, Any], row: Any) -> tuple[str, ...]:
    return tuple(name for name, _, _ in stack(of, int(row["python"])))


def test_what_was_made_before_has_its_names(start: Start, library: Path) -> None:
    program = start(FAKE_DEVICES="2")
    assert attach(program, library) == 1
    program.run("train(1)")
    program.run("load_another()")
    assert program.end() == 0
    of = records(program.dump())
    devices = of["name"][of["name"]["kind"] == DEVICE]
    assert [text(of, int(row["text"])) for row in devices] == ["Simulated GPU 0"]
    assert [text(of, int(row["symbol"])) for row in of["kernel"]] == ["gemm", "softmax"]
    assert set(of["kernel"]["context"]) == set(of["launch"]["context"]) == {1}


def test_it_says_that_it_came_late(start: Start, library: Path) -> None:
    program = start()
    assert attach(program, library) == 1
    assert attach(program, library) == 1
    assert program.end() == 0
    (note,) = meta(program.dump())["note"]
    assert "attached" in note and "NVTX" in note


def test_the_folder_may_be_named(start: Start, library: Path, tmp_path: Path) -> None:
    program = start()
    assert attach(program, library, tmp_path / "other") == 1
    assert attach(program, library, tmp_path / "third") == 1
    program.run("train(10)")
    assert program.end() == 0
    (dump,) = (tmp_path / "other").iterdir()
    assert len(records(dump)["launch"]) == len(records(dump)["kernel"]) == 10
    assert not program.folder.exists() and not (tmp_path / "third").exists()


def test_a_process_that_is_recorded_goes_on_as_it_was(
    start: Start, library: Path, tmp_path: Path
) -> None:
    program = start(injected=True)
    assert attach(program, library, tmp_path / "other") == 1
    program.run("train(10)")
    assert program.end() == 0
    of = records(program.dump())
    assert len(of["launch"]) == len(of["kernel"]) == 30
    assert "note" not in meta(program.dump())
    assert not (tmp_path / "other").exists()


def test_where_nothing_can_be_written_it_says_so_and_the_program_goes_on(
    start: Start, library: Path
) -> None:
    program = start()
    assert attach(program, library, "/proc/none") == 0
    program.run("train(10)")
    assert program.end() == 0


def test_what_was_refused_may_be_tried_again(start: Start, library: Path, tmp_path: Path) -> None:
    program = start()
    (tmp_path / "file").touch()
    for folder in ("/proc/none", tmp_path / "file", tmp_path / "none" / "deeper"):
        assert attach(program, library, folder) == 0
    program.run("train(10)")
    assert attach(program, library) == 1
    program.run("train(5)")
    assert program.end() == 0
    assert header(program.dump())["state"] == 1
    assert len(records(program.dump())["launch"]) == len(records(program.dump())["kernel"]) == 5


def test_a_recording_that_was_stopped_does_not_begin_again(start: Start, library: Path) -> None:
    program = start()
    assert attach(program, library) == 1
    with closing(program.control()) as control:
        assert control.stop()
    assert attach(program, library) == 0
    program.run("train(10)")
    assert program.end() == 0
    assert len(records(program.dump())["launch"]) == 0


def test_many_at_once_make_one_recording(start: Start, library: Path, tmp_path: Path) -> None:
    program = start()
    folders = ["/proc/none", str(tmp_path / "one"), str(tmp_path / "other")]
    program.run(f"attach_often({str(library)!r}, *{folders!r})")
    program.run("train(10)")
    assert program.end() == 0
    (dump,) = tmp_path.glob("o*/*.fdump")
    assert header(dump)["state"] == 1
    assert len(records(dump)["launch"]) >= 10
