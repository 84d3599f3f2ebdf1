"""Extended payloads of NVTX are decoded by their schemas, and never read beyond their size."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.inject.nvtx.nvtx_recorded import MARK, PUSH_POP, START_END, Ended, Recorded, only

MAX_JSON = 2048
CUT = "…"


def value(ended: Ended) -> Any:
    return json.loads(ended.json)


@pytest.fixture(scope="module")
def printed_and_recorded(
    compiled: Callable[..., Path],
    injected_env: Callable[..., dict[str, str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[list[int], Recorded]:
    folder = tmp_path_factory.mktemp("payloads")
    env = injected_env(folder, fake=False)
    command = [compiled("nvtx_payloads.cpp")]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return [int(line) for line in done.stdout.split()], only(folder)


@pytest.fixture(scope="module")
def marks(printed_and_recorded: tuple[list[int], Recorded]) -> dict[str, Any]:
    """The values of all marks of nvtx_payloads.cpp, by name."""
    return {
        each.name: value(each)
        for each in printed_and_recorded[1].ended
        if each.kind == MARK and each.json
    }


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("CHAR", "c"),
        ("UCHAR", 200),
        ("SHORT", -3),
        ("USHORT", 65535),
        ("INT", -5),
        ("UINT", 4000000000),
        ("LONG", -7),
        ("ULONGLONG", 2**64 - 1),
        ("INT8", -8),
        ("UINT8", 8),
        ("INT64", -64),
        ("FLOAT", 0.1),
        ("DOUBLE", 0.1),
        ("LONGDOUBLE", 0.5),
        ("SIZE", 22),
        ("ADDRESS", "0xdeadbeef"),
        ("WCHAR", "é"),
        ("CHAR16", "世"),
        ("CHAR32", "🔥"),
        ("BYTE", "0xab"),
        ("INT128", -(2**100)),
        ("UINT128", 2**127),
        ("FLOAT16", -5),
        ("BF16", 1.5),
        ("TF32", 1.5),
        ("FLOAT32", 2.5),
        ("FLOAT128", 0x1921FB54442D1 / 2**47),
        ("PID_UINT32", 17),
        ("TID_UINT64", 18),
        ("NVTX_REGISTERED_STRING_HANDLE", "known"),
        ("CSTRING", "no zero needed"),
        ("numbers", [1, 2, 3]),
        ("raw", "0x017fff00"),
        ("strange", ["nan", "inf", "-inf"]),
        ("own size", "to its zero"),
        ("quoted", '"\\\n\x01'),
    ],
)
def test_predefined_types(marks: dict[str, Any], kind: str, expected: object) -> None:
    assert marks[kind] == expected


STRUCTURE = {
    "letter": "l",
    "inner": {"x": 1, "y": 2.5},
    "numbers": [1, 2, 3],
    "text": "text",
    "pointer": "far away",
    "inners": [{"x": 3, "y": 4}, {"x": 5, "y": 6}],
    "kind": "set",
    "flags": "read|write",
    "wide": "hé",
}


def test_a_structure_is_laid_out_as_by_the_compiler(marks: dict[str, Any]) -> None:
    assert marks["structure"] == marks["size by schema"] == STRUCTURE


def test_values_that_a_schema_does_not_know(marks: dict[str, Any]) -> None:
    odd = {"kind": 9, "flags": "read|12", "pointer": None}
    assert marks["odd values"] == STRUCTURE | odd


def test_what_is_beyond_the_size_is_not_read(marks: dict[str, Any]) -> None:
    assert marks["half of it"] == {
        **STRUCTURE,
        "numbers": [1, CUT],
        "inners": [CUT],
        **dict.fromkeys(("text", "pointer", "kind", "flags", "wide")),
    }
    assert marks["too short"] == {"n": 7, "values": [1, 2, CUT], "text": None, "after": None}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("packed", {"a": "p", "b": 77}),
        ("explicit", {"last": 3, "2": 2}),
        ("pointer", {"value": 5}),
        ("by index", {"n": 2, "values": [1, 2], "text": "text", "after": 9}),
        ("of two dimensions", {"shape": [2, 3], "values": [1, 2, 3, 4, 5, 6]}),
        ("length elsewhere", [[1, 2, 3], 3]),
        ("into a blob", "the b"),
        ("into nothing", None),
        ("union", {"which": 1, "value": {"real": 1.5}}),
        ("no member", {"which": 2, "value": None}),
    ],
)
def test_layouts(marks: dict[str, Any], name: str, expected: object) -> None:
    assert marks[name] == expected


def test_a_payload_names_its_event(printed_and_recorded: tuple[list[int], Recorded]) -> None:
    printed, dump = printed_and_recorded
    depths, enabled = printed[:2], printed[2]
    assert depths == [0, 0] and enabled == 1
    mark, pushed, started = [each for each in dump.ended if each.color]
    for each in (mark, pushed):
        assert (each.name, each.category, each.color) == ("from payload", "4", 0xFF00FF00)
    assert (mark.kind, pushed.kind, started.kind) == (MARK, PUSH_POP, START_END)
    assert value(mark) == {"value": 1}
    assert value(pushed) == {"value": 1, "more": 3}
    assert (started.name, started.category, started.color) == ("renamed", "5", 0xFF0000FF)
    assert value(started) == {"value": 2}


def test_deferred_events(printed_and_recorded: tuple[list[int], Recorded]) -> None:
    printed, dump = printed_and_recorded
    now = printed[3]
    told = [each for each in dump.ended if each.name in ("one", "two")]
    assert [(each.start - now, each.end - now, value(each)) for each in told] == [
        (0, 10, {"value": 1}),
        (20, 50, {"value": 2}),
    ]
    assert {each.threads for each in told} == {(0, 0)}
    assert dump.notes == ["Deferred NVTX events left out, as their clock is not known: 1"]


def test_flexible_data_ends_where_its_blob_does(
    printed_and_recorded: tuple[list[int], Recorded],
) -> None:
    texts = [each for each in printed_and_recorded[1].ended if each.json.startswith('{"text"')]
    told = [value(each) for each in texts]
    outside = {"text": "ible, and what is not of it"}  # a text somewhere, up to its zero
    assert told == [{"text": "ible"}, outside, outside]


def test_large_payloads_are_cut(
    marks: dict[str, Any], printed_and_recorded: tuple[list[int], Recorded]
) -> None:
    assert set(marks["long list"][:-1]) == {7} and marks["long list"][-1] == CUT
    assert set(marks["long text"]) == {"x"} and len(marks["long text"]) > MAX_JSON - 10
    assert len(marks["long text of no characters"]) < MAX_JSON + 10
    assert set(marks["long blob"][2:]) == {"7", "8"}
    assert list(marks["many entries"])[-1] == CUT and len(marks["many entries"]) < 500
    depth, inner = 0, marks["nested"]
    while isinstance(inner, dict):
        depth, inner = depth + 1, inner["in"]
    assert 4 < depth < 40 and inner is None
    # Bytes that are no characters have been read as one of three bytes each.
    written = [each.json.replace("\ufffd", "?") for each in printed_and_recorded[1].ended]
    sizes = [len(text.encode()) for text in written]
    assert max(sizes) < MAX_JSON + 64


def test_numpy_payloads(injected_env: Callable[..., dict[str, str]], tmp_path: Path) -> None:
    pytest.importorskip("nvtx")
    script = """
        import nvtx, numpy as np
        domain = nvtx.Domain("numpy")
        record = np.dtype([("x", "i4"), ("y", "f8"), ("s", "U4"), ("v", "i2", (3,))])
        for payload in (
            np.array([(1, 2.5, "äb", [1, 2, 3])], record),
            [1, 2, 3], (0.5, 1.5), range(3), b"abc", np.float16(1.5) * np.ones(2, "f2"),
        ):
            domain.mark(message="payload", payload=payload)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    subprocess.run(command, env=injected_env(tmp_path, fake=False), check=True)
    assert [value(each) for each in only(tmp_path).ended] == [
        {"size": 1, "data": [{"x": 1, "y": 2.5, "s": "äb", "v": [1, 2, 3]}]},
        {"size": 3, "data": [1, 2, 3]},
        {"size": 2, "data": [0.5, 1.5]},
        {"size": 3, "data": [0, 1, 2]},
        "0x616263",
        {"size": 2, "data": [1.5, 1.5]},
    ]


@pytest.mark.deep
def test_nonsense_is_read_within_its_bounds(
    sanitized: Callable[[str], Any],
    compiled: Callable[..., Path],
    injected_env: Callable[..., dict[str, str]],
    tmp_path: Path,
) -> None:
    build = sanitized("address")
    program = compiled("nvtx_malformed.cpp", *build.flags)
    seeds, count = range(1, 4), 1000
    for seed in seeds:
        folder = tmp_path / str(seed)
        env = injected_env(folder, fake=False, library=build.library)
        done = subprocess.run(
            [program, str(seed), str(count)], env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        ended = only(folder).ended
        assert len(ended) == count
        decoded = [value(each) for each in ended if each.json]
        assert len(decoded) > count / 4
        assert not any(isinstance(each, float) and math.isnan(each) for each in decoded)
