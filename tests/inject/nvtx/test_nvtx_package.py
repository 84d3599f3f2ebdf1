"""Ranges and marks of Python's nvtx package are recorded as a program made them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.inject.nvtx.nvtx_recorded import (
    MARK,
    PUSH_POP,
    START_END,
    THREAD,
    Recorded,
    only,
    recorded,
)
from tests.support.writers.fdumprecords import header


def paths(dump: Recorded) -> list[tuple[str, ...]]:
    return [ended.path for ended in dump.ended]


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
