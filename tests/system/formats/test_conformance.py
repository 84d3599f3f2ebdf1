"""speedscope's own collection of profiles: each file gives its totals, or one line says why not."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from flame.cli.main import main
from flame.core.loading.many import load
from tests.conftest import TRACES
from tests.support.oracles.naive_pprof import naive_stacks
from tests.support.profiles.project_tree import project_tree

PROFILES = TRACES / "speedscope" / "profiles"
FILES = sorted(
    path.relative_to(PROFILES).as_posix() for path in PROFILES.glob("**/*") if path.is_file()
)

REFUSED = {
    "speedscope/invalid/incomplete-trace.json": r"events\[0\]: opens frame 0, .* never closed",
    "speedscope/invalid/out-of-order-events.json": r"events\[6\]: closes frame 1",
    "*.cpuprofile": r"Chrome CPU profile .*speedscope",
    "*.heapprofile": r"Chrome heap profile .*speedscope",
    "Chrome/*.json": r"Chrome (trace|DevTools timeline)",
    "callgrind/*": r"callgrind .*speedscope",
    "linux-perf/*": r"perf script .* stackcollapse-perf.pl",
    # These end without the bracket that closes the list, as those of a killed program do.
    "trace-event/simple-partial*": r"cut off at byte",
    "trace-event/*": r"Chrome trace",
}
"""Files that flame does not read, and what is said of them; the first pattern that fits counts."""

Stacks = Counter[tuple[str, ...]]


def complaint(name: str) -> str | None:
    """What must be said of the file; None where it must open."""
    return next((text for pattern, text in REFUSED.items() if fnmatch(name, pattern)), None)


READABLE = [name for name in FILES if not complaint(name)]
UNREADABLE = [name for name in FILES if complaint(name)]


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_is_not_read_is_said_in_one_line(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(PROFILES / name)]) == 3
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith(f"flame: {PROFILES / name}: ")
    assert err.count("\n") == 1
    assert re.search(complaint(name) or "", err)


@pytest.mark.parametrize("name", READABLE)
def test_what_is_read_has_the_stacks_of_a_naive_reading(name: str) -> None:
    path = PROFILES / name
    profile = load(path)
    tree = project_tree(profile, levels="stack")
    found: Stacks = Counter()
    for node, own in enumerate(tree.own.tolist()):
        found[tree.names(node)] += own
    naive = _naive(path)
    assert +found == +naive
    assert int(tree.total[0]) == naive.total()


@pytest.mark.parametrize("name", READABLE)
def test_a_file_is_known_by_its_content_alone(name: str, tmp_path: Path) -> None:
    unnamed = tmp_path / "unknown"
    unnamed.write_bytes((PROFILES / name).read_bytes())
    named, known = project_tree(load(PROFILES / name)), project_tree(load(unnamed))
    assert [named.names(node) for node in range(len(named))] == [
        known.names(node) for node in range(len(known))
    ]
    assert named.total.tolist() == known.total.tolist()


def _naive(path: Path) -> Stacks:
    if path.suffix == ".prof":
        return naive_stacks(path)
    return _folded(path) if "stackcollapse" in str(path) else _speedscope(path)


def _folded(path: Path) -> Stacks:
    """Lines of frames and a whole number, as speedscope reads them.

    Only blank frames at the end of a stack are none for flame: some versions of py-spy wrote a `;`
    there.
    """
    data = path.read_bytes()
    text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8")
    found: Stacks = Counter()
    for line in text.splitlines():
        if matched := re.fullmatch(r"(.*) (\d+)", line):
            frames = matched[1].split(";")
            while not frames[-1].strip():
                frames.pop()
            found[tuple(frames)] += int(matched[2])
    return found


def _speedscope(path: Path) -> Stacks:
    """The values of all profiles, in whole units or nanoseconds."""
    document = json.loads(path.read_bytes())
    names = [frame["name"] for frame in document["shared"]["frames"]]
    found: Stacks = Counter()
    for profile in document["profiles"]:
        scale = {"none": 1, "seconds": 10**9}[profile["unit"]]
        told = _samples(profile) if profile["type"] == "sampled" else _moments(profile)
        for stack, value in told:
            found[tuple(names[frame] for frame in stack)] += value * scale
    return found


def _samples(profile: Any) -> Iterator[tuple[list[int], int]]:
    return zip(profile["samples"], profile["weights"], strict=True)


def _moments(profile: Any) -> Iterator[tuple[list[int], int]]:
    stack: list[int] = []
    before = profile["startValue"]
    for event in profile["events"]:
        yield list(stack), event["at"] - before
        before = event["at"]
        if event["type"] == "O":
            stack.append(event["frame"])
        else:
            assert stack.pop() == event["frame"]
