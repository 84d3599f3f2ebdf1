"""NVTX ranges and marks are recorded as a program made them, by real copies of NVTX."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inject import build
from tests.inject.nvtx.nvtx_recorded import (
    CATEGORY,
    DEVICE,
    DOMAIN,
    MARK,
    PUSH_POP,
    START_END,
    THREAD,
    Recorded,
    only,
    recorded,
)
from tests.support.tiers import examples
from tests.support.waiting import PATIENCE
from tests.support.writers.fdumprecords import header

MAX_DEPTH = 250
Recording = Callable[..., str]


@pytest.fixture
def run(injected_env: Callable[..., dict[str, str]], tmp_path: Path) -> Recording:
    """Runs a program with the library, recording into ``tmp_path``; gives what it printed."""

    def run(*command: str | Path, status: int = 0) -> str:
        done = subprocess.run(
            list(map(str, command)),
            env=injected_env(tmp_path, fake=False),
            capture_output=True,
            text=True,
            check=False,
            timeout=2 * PATIENCE,
        )
        assert done.returncode == status, done.stderr
        return done.stdout

    return run


@pytest.fixture
def python(run: Recording) -> Callable[..., str]:
    """Runs a Python script that uses the nvtx package."""
    pytest.importorskip("nvtx")

    def python(script: str, status: int = 0) -> str:
        return run(sys.executable, "-c", "import nvtx\n" + textwrap.dedent(script), status=status)

    return python


@pytest.fixture
def calls(run: Recording, compiled: Callable[..., Path]) -> Callable[..., list[int]]:
    """Runs a part of nvtx_calls.cpp; gives the numbers that it printed."""

    def calls(*which: str) -> list[int]:
        return [int(line) for line in run(compiled("nvtx_calls.cpp"), *which).split()]

    return calls


def paths(dump: Recorded) -> list[tuple[str, ...]]:
    return [ended.path for ended in dump.ended]


# The nvtx package


def test_annotations_nest(python: Callable[..., str], tmp_path: Path) -> None:
    python("""
        with nvtx.annotate("outer"):
            for _ in range(2):
                with nvtx.annotate("inner"):
                    pass
    """)
    dump = only(tmp_path)
    assert paths(dump) == [("outer", "inner"), ("outer", "inner"), ("outer",)]
    first, second, outer = dump.ended
    assert outer.start < first.start <= first.end <= second.start <= second.end < outer.end
    assert {ended.kind for ended in dump.ended} == {PUSH_POP}
    assert dump.open == [] and dump.notes == [] and dump.dropped == 0


def test_threads_have_the_names_that_the_system_has(
    python: Callable[..., str], tmp_path: Path
) -> None:
    printed = python("""
        import ctypes, threading
        def work(name):
            if name:
                ctypes.CDLL(None).prctl(15, name, 0, 0, 0)
                print(threading.get_native_id())
            with nvtx.annotate("work"):
                pass
        work(None)
        for name in (b"loader", None):
            thread = threading.Thread(target=work, args=(name,))
            thread.start()
            thread.join()
    """)
    # From 3.14 on CPython gives the others names as well.
    names = only(tmp_path).names(THREAD)
    assert {key: name for key, name in names.items() if "(work)" not in name} == {
        (1, int(printed)): "loader"
    }


def test_a_hang_is_as_long_as_it_was(python: Callable[..., str], tmp_path: Path) -> None:
    python(
        f"""
        import os, sys, time
        from pathlib import Path
        sys.path.insert(0, {str(Path(__file__).parents[3])!r})
        from tests.support.writers.fdumprecords import header
        nvtx.push_range("hangs")
        began = time.monotonic_ns()
        (dump,) = Path({str(tmp_path)!r}).glob("*.fdump")
        while header(dump)["end_monotonic"] - began < 0.6e9:
            time.sleep(0.01)
        os.kill(os.getpid(), 9)
        """,
        status=-9,
    )
    dump = only(tmp_path)
    (begin,) = dump.of["open_range"]["start"].tolist()
    assert header(dump.path)["end_monotonic"] - begin > 0.5e9


def test_what_is_said_of_a_range(python: Callable[..., str], tmp_path: Path) -> None:
    python("""
        with nvtx.annotate("all", color=0x123456, domain="D", category="C", payload=-7):
            pass
        nvtx.mark("half", payload=0.5, category=12)
    """)
    dump = only(tmp_path)
    full, half = dump.ended
    assert (full.name, full.domain, full.category, full.color) == ("all", "D", "C", 0x123456)
    assert full.payload == (2, 2**64 - 7)
    assert (half.kind, half.domain, half.category, half.path) == (MARK, "0", "12", ())
    assert half.start == half.end
    assert half.payload == (3, 0x3FE0000000000000)


def test_ranges_may_end_on_another_thread(python: Callable[..., str], tmp_path: Path) -> None:
    ended_by = python("""
        import threading
        begun = nvtx.start_range("across")
        thread = threading.Thread(
            target=lambda: (nvtx.end_range(begun), print(threading.get_native_id())))
        thread.start()
        thread.join()
    """)
    dump = only(tmp_path)
    (across,) = dump.ended
    assert (across.name, across.kind, across.path) == ("across", START_END, ())
    assert across.threads == (dump.pid, int(ended_by))


def test_started_ranges_are_in_no_path(python: Callable[..., str], tmp_path: Path) -> None:
    python("""
        first, second = nvtx.start_range("first"), nvtx.start_range("second")
        with nvtx.annotate("pushed"):
            nvtx.end_range(first)
        nvtx.end_range(second)
    """)
    ended = [(each.name, each.kind, each.path) for each in only(tmp_path).ended]
    assert ended == [
        ("first", START_END, ()),
        ("pushed", PUSH_POP, ("pushed",)),
        ("second", START_END, ()),
    ]


def test_what_is_never_ended_is_told(python: Callable[..., str], tmp_path: Path) -> None:
    python("""
        import threading
        for _ in range(3):
            nvtx.start_range("started")
        nvtx.push_range("outer")
        nvtx.push_range("pushed")
        thread = threading.Thread(target=lambda: nvtx.push_range("in a thread"))
        thread.start()
        thread.join()
    """)
    dump = only(tmp_path)
    assert dump.open == [("outer",), ("outer", "pushed")]
    assert paths(dump) == [("in a thread",)]
    assert dump.notes == [
        "NVTX ranges that were started and not ended: 3",
        "NVTX ranges that were open when their thread ended: 1",
    ]


def test_open_ranges_survive_a_kill(python: Callable[..., str], tmp_path: Path) -> None:
    script = """
        import os
        nvtx.push_range("a")
        nvtx.push_range("gone")
        nvtx.pop_range()
        nvtx.push_range("b")
        os.kill(os.getpid(), 9)
    """
    python(script, status=-9)
    dump = only(tmp_path)
    assert header(dump.path)["state"] == 0
    assert dump.open == [("a",), ("a", "b")]
    assert paths(dump) == [("a", "gone")]


def test_threads_have_paths_of_their_own(python: Callable[..., str], tmp_path: Path) -> None:
    python("""
        import threading
        def work(name):
            for _ in range(100):
                with nvtx.annotate(name), nvtx.annotate("inside", domain=name):
                    pass
        threads = [threading.Thread(target=work, args=(str(i),)) for i in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    """)
    dump = only(tmp_path)
    expected = {(str(i),): 100 for i in range(4)} | {(str(i), "inside"): 100 for i in range(4)}
    assert {path: paths(dump).count(path) for path in set(paths(dump))} == expected
    for ended in dump.ended:
        assert ended.domain == ("0" if ended.path == (ended.name,) else ended.path[0])


def test_generators_interleave_by_domain(python: Callable[..., str], tmp_path: Path) -> None:
    python("""
        def steps(domain):
            with nvtx.annotate("in " + domain, domain=domain):
                yield
        first, second = steps("one"), steps("two")
        next(first), next(second)
        next(first, None), next(second, None)
    """)
    assert paths(only(tmp_path)) == [("in one",), ("in two",)]


def test_a_forked_child_has_the_open_ranges(python: Callable[..., str], tmp_path: Path) -> None:
    python("""
        import os, threading
        nvtx.Domain("D").get_category_id("C")
        attributes = nvtx.Domain("D").get_event_attributes("registered", category=1)
        nvtx.push_range("outer", domain="D", category="C")
        nvtx.Domain("D").push_range(attributes)
        other = threading.Thread(target=lambda: (nvtx.push_range("other"), ready.set(), go.wait()))
        ready, go = threading.Event(), threading.Event()
        other.start(); ready.wait()
        begun = nvtx.start_range("begun")
        child = os.fork()
        if child == 0:
            nvtx.Domain("D").pop_range()
            nvtx.end_range(begun)
            nvtx.mark("of the child", domain="D", category="C")
            os._exit(0)
        os.waitpid(child, 0)
        go.set(); other.join()
        nvtx.end_range(begun)
    """)
    parent, child = recorded(tmp_path)
    assert [(each.path, each.name) for each in child.ended] == [
        (("outer", "registered"), "registered"),
        ((), "begun"),
        ((), "of the child"),
    ]
    assert {(each.domain, each.category) for each in child.ended} == {("D", "C"), ("0", "")}
    assert child.open == [("outer",)]
    assert child.ended[0].threads == (child.pid, child.pid)
    inherited = next(each.start for each in parent.ended if each.name == "begun")
    assert child.ended[1].start == inherited
    assert parent.open == [("outer",), ("outer", "registered")]
    assert child.notes == []


def test_a_forked_child_whose_thread_ends_names_its_ranges_anew(
    python: Callable[..., str], tmp_path: Path
) -> None:
    python("""
        import os, threading
        def work():
            nvtx.push_range("of the parent only")
            nvtx.pop_range()
            nvtx.push_range("outer")
            if os.fork() == 0:
                return
            os.wait()
            nvtx.pop_range()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    """)
    _, child = recorded(tmp_path)
    assert [(each.path, each.name) for each in child.ended] == [(("outer",), "outer")]


# All calls of NVTX, from C++


def test_every_call(calls: Callable[..., list[int]], tmp_path: Path) -> None:
    assert calls("every") == [0, 1, 2, 2, 1, 0, 0, 0, 1]
    dump = only(tmp_path)
    assert [(each.name, each.kind, each.path) for each in dump.ended] == [
        ("ex", MARK, ()),
        ("a", MARK, ()),
        ("wide: é世🔥", MARK, ()),
        ("w", PUSH_POP, ("ex", "a", "w")),
        ("a", PUSH_POP, ("ex", "a")),
        ("ex", PUSH_POP, ("ex",)),
        ("ex", START_END, ()),
        ("a", START_END, ()),
        ("w", START_END, ()),
        ("registered ü", MARK, ()),
        ("registered", START_END, ()),
        ("registered ü", PUSH_POP, ("registered ü",)),
    ]
    assert dump.names(DOMAIN) == {(0, 1): "café"}
    attributed = {"ex", "registered", "registered ü"}
    for ended in dump.ended:
        assert ended.color == (0xFF336699 if ended.name in attributed else 0)
        assert ended.category == ("7" if ended.name in attributed else "")
        assert ended.domain == ("café" if "registered" in ended.name else "0")


def test_a_payload_has_the_bits_of_its_type(
    calls: Callable[..., list[int]], tmp_path: Path
) -> None:
    calls("payloads")
    whole, half = 0xFEDCBA9876543210, 0x76543210
    payloads = [each.payload for each in only(tmp_path).ended]
    assert payloads[:7] == [(0, 0)] + [(n, whole) for n in (1, 2, 3)] + [
        (n, half) for n in (4, 5, 6)
    ]
    assert payloads[7:] == [(0, 0)] * 4


def test_names(calls: Callable[..., list[int]], tmp_path: Path) -> None:
    calls("names")
    dump = only(tmp_path)
    assert dump.names(THREAD) == {(0, 1234): "reader", (0, 1235): "écrivain"}
    assert dump.names(DOMAIN) == {(0, 1): "library"}
    default = {(0, 3): "three", (0, 4): "four"}
    assert dump.names(CATEGORY) == default | {(1, 3): "drei", (1, 4): "vier"}
    assert dump.names(DEVICE) == {
        (0, 0): "first",
        (0, 1): "second",
        (0, 2): "third",
        (0, 3): "fourth",
    }


def test_only_the_fields_within_the_size_are_read(
    calls: Callable[..., list[int]], tmp_path: Path
) -> None:
    calls("sizes")
    for size, ended in enumerate(only(tmp_path).ended):
        assert ended.category == ("9" if size >= 8 else "")
        assert ended.color == (5 if size >= 16 else 0)
        assert ended.payload == ((2, size) if size >= 32 else (0, 0))
        assert ended.name == ("whole" if size >= 48 else "")


def test_nothing_is_an_empty_message(calls: Callable[..., list[int]], tmp_path: Path) -> None:
    assert calls("nothing") == [0, 1, 2, 2, 1, 0, 1]
    ended = only(tmp_path).ended
    assert len(ended) == 13
    assert {each.name for each in ended} == {""}


def test_a_pop_without_a_push_is_an_error(calls: Callable[..., list[int]], tmp_path: Path) -> None:
    assert calls("unbalanced") == [-1, -1, 0, -1, 0, -1]
    dump = only(tmp_path)
    assert [each.name for each in dump.ended] == ["a", "once"]
    assert dump.notes == ["NVTX ranges that were started and not ended: 1"]


def test_a_pop_closes_the_innermost_of_its_domain(
    calls: Callable[..., list[int]], tmp_path: Path
) -> None:
    assert calls("interleaved") == [0, 0, 1, 0, 0, 1, 0, 0, 0, 0]
    ended = [(each.domain, each.path) for each in only(tmp_path).ended]
    assert ended == [
        ("two", ("a", "b")),
        ("one", ("a", "c")),
        ("one", ("a",)),
        ("0", ("d",)),
        ("two", ("e",)),
    ]


def test_deep_paths_keep_their_outermost_ranges(
    calls: Callable[..., list[int]], tmp_path: Path
) -> None:
    assert calls("deep", "500") == [*range(500), *reversed(range(500))]
    dump = only(tmp_path)
    *nested, again = dump.ended
    for depth, ended in zip(reversed(range(500)), nested, strict=True):
        assert ended.name == str(depth)
        assert ended.path == tuple(map(str, range(min(depth + 1, MAX_DEPTH))))
    assert again.path == ("again",)
    assert dump.dropped == 0


@pytest.mark.deep
def test_bottomless_nesting_is_counted_and_stays_balanced(
    calls: Callable[..., list[int]], tmp_path: Path
) -> None:
    count, known = 20_000, 16 * 1024
    assert calls("deep", str(count)) == [*range(count), *reversed(range(count))]
    dump = only(tmp_path)
    assert len(dump.of["range"]) == known + 1
    assert dump.ended[-1].path == ("again",)
    assert dump.dropped == count - known == header(dump.path)["dropped"]


def test_copies_of_nvtx_share_their_state(
    run: Recording, compiled: Callable[..., Path], tmp_path: Path
) -> None:
    library = compiled("nvtx_copy.cpp", "-shared", "-fvisibility=hidden")
    copies = [shutil.copy(library, tmp_path / f"copy{i}.so") for i in range(4)]
    printed = run(compiled("nvtx_copies.cpp"), *copies)
    assert list(map(int, printed.split())) == [0, 1, 2, 3, 3, 2, 1, 0]
    dump = only(tmp_path)
    assert dump.names(DOMAIN) == {(0, 1): "shared"}
    # The last thread goes on in a chunk of an ended one: whose comes first in the file is open.
    paths = sorted(each.path for each in dump.ended)
    assert paths == [("at once",)] * 4 + [("nested",) * depth for depth in (1, 2, 3, 4)]


def test_without_a_dump_nvtx_does_nothing(
    injected_env: Callable[..., dict[str, str]], compiled: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    env = injected_env(tmp_path / "file", fake=False)
    command = [str(compiled("nvtx_calls.cpp")), "unbalanced"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    no_tracking = [-2] * 6
    assert list(map(int, done.stdout.split())) == no_tracking
    assert done.stderr == ""


# Any pushes and pops, against a model


class Model:
    """The open ranges of a thread, in the order of their pushes."""

    def __init__(self) -> None:
        self.open: list[tuple[str, str]] = []

    def do(self, what: str, domain: str = "", name: str = "") -> int:
        """What NVTX has to return."""
        depth = sum(each == domain for each, _ in self.open)
        if what == "push":
            self.open.append((domain, name))
            return depth
        if what == "pop" and depth:
            innermost = max(i for i, (each, _) in enumerate(self.open) if each == domain)
            del self.open[innermost]
        return depth - 1 if what == "pop" else 0

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(name for _, name in self.open)


DOMAINS = st.sampled_from(["0", "one", "two", "three"])
NAMES = st.sampled_from(["a", "b", "c"])
PUSHES = st.tuples(st.just("push"), DOMAINS, NAMES)
POPS = st.tuples(st.just("pop"), DOMAINS)
FORKS = st.just(("fork",))
COMMANDS = st.lists(st.one_of(PUSHES, PUSHES, PUSHES, POPS, POPS, FORKS), max_size=40)


@pytest.fixture(scope="module")
def model(buildable: None, compiled: Callable[..., Path]) -> Path:
    return compiled("nvtx_model.cpp", *build.OPTIMIZED, *map(str, build.sources()))


@examples(0.25)
@given(commands=COMMANDS)
def test_any_pushes_and_pops(
    commands: list[tuple[str, ...]],
    model: Path,
    injected_env: Callable[..., dict[str, str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("model")
    told = "".join(" ".join(command) + "\n" for command in commands)
    env = injected_env(folder, fake=False)
    del env["NVTX_INJECTION64_PATH"]  # the library is in the program
    done = subprocess.run([model], input=told, env=env, capture_output=True, text=True, check=True)
    dumps = {dump.pid: dump for dump in recorded(folder)}
    expected = Model()
    for command, line in zip(commands, done.stdout.splitlines(), strict=True):
        pid, returned, path = map(int, line.split())
        assert returned == expected.do(*command)
        assert (dumps[pid].path_of(path) if path else ()) == expected.path
    if dumps:
        last = max(dumps.values(), key=lambda dump: dump.path.name.split("-")[1])
        assert last.open == [expected.path[: i + 1] for i in range(len(expected.path))]
