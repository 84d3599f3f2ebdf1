"""speedscope files: every way to tell stacks, in exact whole numbers."""

from __future__ import annotations

import gzip
import json
from functools import partial
from typing import Any

import numpy as np
import pytest

from flame.core.attribution.resolved import resolve_stacks
from flame.core.model.frames import Frame, Kind
from flame.core.model.raw import RawStacks
from flame.core.readers.stacks.speedscope_values import ProfileRows, merge_as_measures, parse_unit
from tests.support.counted_calls import count_calls
from tests.support.profiles.project_tree import project_tree
from tests.support.writers.speedscopefile import document, evented, opened, sampled, stacks


def frames_of(raw: RawStacks) -> list[Frame]:
    return list(raw.frames.build().frames[1:])


def test_samples_are_root_first_with_their_weights() -> None:
    raw = opened(document(sampled([[0, 1, 2], [0, 1], [0, 1, 2]], [1, 2.5, 0.25])))
    assert stacks(raw) == {("a", "b", "c"): 1_250_000_000, ("a", "b"): 2_500_000_000}
    assert [(one.key, one.title, one.unit) for one in raw.measures] == [("time", "time", "ns")]
    assert raw.start is not None
    assert raw.start.tolist() == [0, 1_000_000_000, 3_500_000_000]
    assert (raw.thread, raw.threads) == (None, ())


def test_every_moment_counts_to_the_innermost_open_frame() -> None:
    raw = opened(
        document(
            evented(
                ("O", 0, 1), ("O", 1, 1), ("C", 1, 3), ("O", 1, 3.5), ("O", 1, 4), ("C", 1, 5),
                ("C", 1, 5), ("C", 0, 7),
            )
        )
    )  # fmt: skip
    assert stacks(raw) == {("a", "b"): 2_500_000, ("a",): 2_500_000, ("a", "b", "b"): 1_000_000}
    assert raw.start is not None
    assert raw.start.tolist() == [1_000_000, 3_000_000, 3_500_000, 4_000_000, 5_000_000]


def test_time_with_nothing_open_is_not_counted() -> None:
    raw = opened(document(evented(("O", 0, 5), ("C", 0, 6), ("O", 1, 8), ("C", 1, 9))))
    assert stacks(raw) == {("a",): 1_000_000, ("b",): 1_000_000}


def test_a_sample_without_frames_is_the_empty_stack() -> None:
    raw = opened(document(sampled([[], [0], []], [1, 1, 2], unit="none")))
    assert stacks(raw) == {(): 3, ("a",): 1}
    tree = project_tree(resolve_stacks(raw))
    assert (int(tree.total[0]), int(tree.own[0])) == (4, 3)


def test_a_file_without_samples_opens() -> None:
    raw = opened(document(sampled([], []), evented(), frames=[]))
    assert stacks(raw) == {}


@pytest.mark.parametrize(
    ("unit", "ns"),
    [("nanoseconds", 1), ("microseconds", 10**3), ("milliseconds", 10**6), ("seconds", 10**9)],
)
def test_times_of_every_unit_are_whole_nanoseconds(unit: str, ns: int) -> None:
    for profile in (sampled([[0]], [7], unit=unit), evented(("O", 0, 1), ("C", 0, 8), unit=unit)):
        raw = opened(document(profile))
        assert stacks(raw) == {("a",): 7 * ns}
        assert raw.measures[0].unit == "ns"


def test_times_are_rounded_one_by_one_and_do_not_drift() -> None:
    raw = opened(document(sampled([[0]] * 1_000, [0.0000001] * 1_000)))
    assert stacks(raw) == {("a",): 100_000}
    moments = [(("O", "C")[i % 2], 0, i * 0.1) for i in range(1_000)]
    raw = opened(document(evented(*moments, unit="microseconds")))
    assert stacks(raw) == {("a",): 50_000}


def test_large_times_are_exact() -> None:
    start = 1_700_000_000_000_000_001
    events = (("O", 0, start), ("O", 1, start + 3), ("C", 1, start + 4), ("C", 0, start + 4))
    raw = opened(document(evented(*events, unit="nanoseconds", startValue=start - 2)))
    assert stacks(raw) == {("a",): 3, ("a", "b"): 1}
    assert raw.start is not None
    assert raw.start.tolist() == [2, 5]


@pytest.mark.parametrize(
    ("unit", "weights", "measure", "values"),
    [
        ("bytes", [1, 4096], ("bytes", "bytes"), [1, 4096]),
        ("none", [3, 2.0], ("samples", "count"), [3, 2]),
        ("none", [0.5, 30], ("samples", "1e-1"), [5, 300]),
        ("none", [0.1, 1.25, 1e-9], ("samples", "1e-9"), [100_000_000, 1_250_000_000, 1]),
    ],
)
def test_other_units(
    unit: str, weights: list[float], measure: tuple[str, str], values: list[int]
) -> None:
    raw = opened(document(sampled([[0]] * len(weights), weights, unit=unit)))
    assert [(one.key, one.unit) for one in raw.measures] == [measure]
    assert raw.measures[0].values.tolist() == values
    assert raw.start is None
    assert raw.warnings == []


def test_fractions_of_events_are_exact() -> None:
    raw = opened(
        document(evented(("O", 0, 0.1), ("O", 1, 0.3), ("C", 1, 0.4), ("C", 0, 0.4), unit="none"))
    )
    assert raw.measures[0].unit == "1e-1"
    assert stacks(raw) == {("a",): 2, ("a", "b"): 1}


def test_fractions_that_do_not_fit_are_rounded_and_that_is_said() -> None:
    raw = opened(document(sampled([[0], [1]], [1e15, 0.001], unit="none")))
    assert raw.measures[0].unit == "1e-3"
    raw = opened(document(sampled([[0], [1]], [1e-10, 3e-10], unit="none")))
    assert raw.warnings == ["weights are rounded to 9 decimals"]


def test_profiles_of_one_unit_are_threads() -> None:
    raw = opened(
        document(
            sampled([[0]], [1], name="main", startValue=5, endValue=6),
            evented(("O", 0, 7_000), ("C", 0, 9_000), name="worker", startValue=6_000),
            sampled([[1]], [4], name="main", startValue=5),
        )
    )
    assert stacks(raw) == {("a",): 3_000_000_000, ("b",): 4_000_000_000}
    assert [(one.tid, one.name) for one in raw.threads] == [(1, "main"), (2, "worker"), (3, "main")]
    assert raw.thread is not None
    assert raw.thread.tolist() == [0, 1, 2]
    assert raw.start is not None
    assert raw.start.tolist() == [0, 2_000_000_000, 0]
    tree = project_tree(resolve_stacks(raw))
    assert {tree.names(node) for node in tree.children(0)} == {
        ("main [1]",), ("worker [2]",), ("main [3]",),
    }  # fmt: skip


def test_profiles_of_different_units_are_measures() -> None:
    raw = opened(
        document(
            sampled([[0], [0, 1]], [1, 2], name="wall"),
            sampled([[0]], [512], name="allocated", unit="bytes"),
        )
    )
    assert [one.key for one in raw.measures] == ["time", "bytes"]
    assert stacks(raw) == {("a",): 1_000_000_000, ("a", "b"): 2_000_000_000}
    assert stacks(raw, 1) == {("a",): 512}
    assert (raw.start, raw.thread) == (None, None)


def test_the_profile_that_is_shown_first_is_the_first_measure() -> None:
    raw = opened(
        document(sampled([[0]], [1]), sampled([[1]], [2], unit="bytes"), activeProfileIndex=1)
    )
    assert [one.key for one in raw.measures] == ["bytes", "time"]
    assert stacks(raw) == {("b",): 2}


def test_threads_with_two_measures_are_one_by_their_name() -> None:
    raw = opened(
        document(
            *(
                sampled([[0]], [1], name=name, unit=unit)
                for unit in ("seconds", "bytes")
                for name in ("main", "worker")
            )
        )
    )
    assert [one.name for one in raw.threads] == ["main", "worker"]
    assert raw.thread is not None
    assert raw.thread.tolist() == [0, 1, 0, 1]


def test_frames_with_equal_names_and_places_are_one() -> None:
    frames = [{"name": "f", "file": "x.rb", "line": 1}] * 2 + [
        {"name": "f", "file": "x.rb", "line": 2}
    ]
    raw = opened(document(sampled([[0], [1], [2]], [1, 1, 1]), frames=frames))
    assert len(set(raw.stack.tolist())) == 2
    assert frames_of(raw) == [Frame(Kind.FRAME, "f", "x.rb", 1), Frame(Kind.FRAME, "f", "x.rb", 2)]


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (
            {"name": "f", "file": "a/b.py", "line": 3, "col": 9},
            Frame(Kind.PYTHON, "f", "a/b.py", 3),
        ),
        ({"name": "f", "file": "<string>"}, Frame(Kind.PYTHON, "f", "<string>")),
        ({"name": "f", "file": "x.cpp", "line": None}, Frame(Kind.NATIVE, "f", "x.cpp")),
        ({"name": "f", "file": "x.js", "line": -1}, Frame(Kind.FRAME, "f", "x.js")),
        ({"name": "f", "file": None}, Frame(Kind.FRAME, "f")),
        ({"name": "f (a/b.py:3)"}, Frame(Kind.PYTHON, "f", "a/b.py", 3)),
        ({"name": "kernel", "file": "kernel"}, Frame(Kind.FRAME, "kernel", "kernel")),
    ],
)
def test_kinds_come_from_the_file(frame: dict[str, Any], expected: Frame) -> None:
    assert frames_of(opened(document(sampled([[0]], [1]), frames=[frame]))) == [expected]


def test_our_own_profiles_are_measures_of_the_same_stacks() -> None:
    raw = opened(
        document(
            sampled([[0, 1], [2]], [70, 5], name="GPU time", unit="nanoseconds"),
            sampled([[2], [0, 1], []], [1, 2, 4], name="GPU activities", unit="none"),
            sampled([[2]], [0.5], name="joules (of all)", unit="none"),
            sampled([[2]], [7], name="bytes", unit="bytes"),
            frames=[
                {"name": "main", "file": "app.py", "line": 3},
                {"name": "gemm", "file": "kernel"},
                {"name": "step", "file": "python"},
            ],
            exporter="flame@0.1",
        )
    )
    assert [(one.key, one.title, one.unit) for one in raw.measures] == [
        ("gpu", "GPU time", "ns"),
        ("count", "GPU activities", "count"),
        ("joules-of-all", "joules (of all)", "1e-1"),
        ("bytes", "bytes", "bytes"),
    ]
    assert stacks(raw) == {("main", "gemm"): 70, ("step",): 5}
    assert stacks(raw, 1) == {("main", "gemm"): 2, ("step",): 1, (): 4}
    assert stacks(raw, 2) == {("step",): 5}
    assert (len(raw.stack), raw.start, raw.thread) == (3, None, None)
    assert frames_of(raw) == [
        Frame(Kind.PYTHON, "main", "app.py", 3),
        Frame(Kind.KERNEL, "gemm"),
        Frame(Kind.PYTHON, "step"),
    ]


def test_measures_of_one_title_have_different_keys() -> None:
    profiles = [
        sampled([[0]], [1], name=name, unit="none") for name in ("GPU time", "GPU time", "?", "")
    ]
    raw = opened(document(*profiles, exporter="flame@0.1"))
    assert [one.key for one in raw.measures] == ["gpu", "gpu-2", "value", "value-2"]


def test_keys_of_many_measures_of_one_title_are_not_tried_again_and_again() -> None:
    one = ProfileRows("bytes", parse_unit("bytes"), 0, np.zeros(1, np.int32), np.ones(1, np.int64))
    few, many = (count_calls(partial(merge_as_measures, [one] * n)) for n in (1_000, 2_000))
    assert many < 2.5 * few


@pytest.mark.parametrize(
    "name", ["\ud800", "\x01\x1b[31m", "é\u202e\U0001f525", "[bold]", "x" * 100_000]
)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_names_of_any_kind_open(name: str, ascii_only: bool) -> None:
    text = json.dumps(
        json.loads(document(sampled([[0]], [1]), frames=[name])), ensure_ascii=ascii_only
    )
    [stack] = stacks(opened(text.encode("utf-8", "surrogatepass")))
    shown = name if name != "\ud800" else "?" if ascii_only else "\ufffd" * 3
    assert stack == (shown,)


def test_gzipped_files_and_byte_order_marks_are_no_obstacle() -> None:
    data = document(sampled([[0]], [1]))
    assert (
        stacks(opened(gzip.compress(data)))
        == stacks(opened(b"\xef\xbb\xbf" + data))
        == stacks(opened(data))
    )


def test_white_space_is_no_obstacle() -> None:
    data = document(sampled([[0, 1], [], [2]], [1, 2, 3]))
    loose = json.dumps(json.loads(data), indent=3).replace("\n", "\r\n\t")
    assert stacks(opened(loose.encode())) == stacks(opened(data))


@pytest.mark.deep
def test_ten_thousand_frames_deep() -> None:
    deep = [0, 1] * 5_000
    raw = opened(document(sampled([deep, deep[:-1], [2]], [1, 1, 1], unit="none")))
    assert max(map(len, stacks(raw))) == 10_000
    opening = [("O", frame, 0) for frame in deep]
    closing = [("C", frame, 1) for frame in reversed(deep)]
    raw = opened(document(evented(*opening, *closing, unit="none")))
    assert stacks(raw) == {tuple("ab" * 5_000): 1}
