"""All calls of NVTX, from C++, are recorded and return what they must, by real copies of NVTX."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.inject.nvtx.conftest import Recording
from tests.inject.nvtx.nvtx_recorded import (
    CATEGORY,
    DEVICE,
    DOMAIN,
    MARK,
    PUSH_POP,
    START_END,
    THREAD,
    only,
)
from tests.support.writers.fdumprecords import header

MAX_DEPTH = 250


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
