"""Splitting by PC samples once more, slowly and plainly: launch by launch, with fractions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from flame.core.model.frames import Frame
from flame.core.model.pc_samples import Sampling
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from tests.support.oracles.naive_tree import Label, Shape, Stack

Bounds = tuple[int, int]
"""The least and the most a part may have: parts of equal remainders are equally right."""

Rename = Callable[[str], str]


@dataclass(frozen=True)
class Launch:
    """One kernel as a test has recorded it: row ``row`` of the activities."""

    row: int
    ranges: tuple[str, ...]
    python: tuple[str, ...]
    kernel: str
    shapes: str = ""

    def step(self, level: str) -> list[Label]:
        """Its frames on a level that samples say nothing of."""
        if level == "kernel":
            return [("kernel", self.kernel)]
        if level == "shapes":
            return [("shapes", self.shapes)] if self.shapes else []
        names = self.ranges if level == "nvtx" else self.python
        return [(level, name) for name in names]


def hamilton(value: int, weights: Sequence[int]) -> list[Bounds]:
    """`value` in proportion to `weights`: rounded down, the largest remainders one more."""
    quotas = [Fraction(value * weight, sum(weights)) for weight in weights]
    down = [int(quota) for quota in quotas]
    rests = [quota - whole for quota, whole in zip(quotas, down, strict=True)]
    left = value - sum(down)
    # The last that has one more, and the first that has not: where they are equal it is a tie.
    ordered = sorted(rests, reverse=True)
    low = ordered[left - 1] if left else Fraction(1)
    high = ordered[left] if left < len(ordered) else Fraction(0)
    tied = low == high
    return [
        (whole + (rest > low or (rest == low and not tied and left > 0)), whole + (rest >= low))
        for whole, rest in zip(down, rests, strict=True)
    ]


def label_of(frame: Frame, name: str) -> Label:
    """Kind and text of a frame; instructions only of one kernel and one line are one."""
    function = frame.get("function")
    place = f" of {function} {frame.file}:{frame.line}" if function else ""
    return frame.kind.title + place, name


def tree_stack(tree: StackTree, node: int) -> Stack:
    """The frames of `node` from the root down."""
    steps = tree.path(node)[1:]
    return tuple(label_of(tree.frames[int(tree.frame[at])], tree.name(at)) for at in steps)


@dataclass(frozen=True)
class Part:
    """What ends with one stack of the launches that share all parts."""

    path: Stack
    value: Bounds
    count: Bounds
    launches: tuple[Launch, ...]


def parts(
    profile: Profile,
    launches: Iterable[Launch],
    levels: Sequence[str],
    weight: Sequence[int],
    rename: Rename = str,
) -> list[Part]:
    """The parts of all `launches`, of which row i weighs `weight[i]`."""
    units: defaultdict[tuple[int, Stack], list[Launch]] = defaultdict(list)
    sampling, of = profile.sampling, profile.activities.groups.of_row
    assert sampling is not None
    for launch in launches:
        path = tuple(label for level in levels for label in _steps(launch, level))
        units[int(sampling.of_group[of[launch.row]]), path].append(launch)
    found = []
    for (distribution, path), members in units.items():
        value = sum(weight[one.row] for one in members)
        found += _split(
            profile, sampling, distribution, path, value, tuple(members), levels, rename
        )
    return found


def _steps(launch: Launch, level: str) -> list[Label]:
    return [(level, "")] if level in ("sass", "stall") else launch.step(level)


def _split(
    profile: Profile,
    sampling: Sampling,
    distribution: int,
    path: Stack,
    value: int,
    members: tuple[Launch, ...],
    levels: Sequence[str],
    rename: Rename,
) -> list[Part]:
    """The parts of one unit, whose `path` has a place for what the samples say."""
    samples = Counter[tuple[tuple[str, Label], ...]]()
    if distribution < 0:
        samples[()] = 1
    else:
        for entry in range(sampling.bounds[distribution], sampling.bounds[distribution + 1]):
            known = {"sass": sampling.sass[entry], "stall": sampling.stall[entry]}
            frames = {level: profile.frames[int(frame)] for level, frame in known.items()}
            labels = {level: label_of(one, rename(one.name)) for level, one in frames.items()}
            key = tuple((level, labels[level]) for level in labels if level in levels)
            samples[key] += int(sampling.samples[entry])
    keys = list(samples)
    values = hamilton(value, [samples[key] for key in keys])
    counts = hamilton(len(members), [samples[key] for key in keys])
    return [
        Part(_filled(path, dict(key)), value, count, members)
        for key, value, count in zip(keys, values, counts, strict=True)
        if value[1] or count[1]
    ]


def _filled(path: Stack, known: dict[str, Label]) -> Stack:
    """`path` with what is known in the places for it; these are no steps where nothing is."""
    steps = (known.get(kind) if kind in ("sass", "stall") else (kind, text) for kind, text in path)
    return tuple(step for step in steps if step)


def check(tree: StackTree, found: Iterable[Part], shape: Shape | None = None) -> None:
    """Own values and counts of every node are those of the parts, as `shape` leaves these."""
    low, high = Counter[tuple[Stack, str]](), Counter[tuple[Stack, str]]()
    for part in found:
        path = shape.apply(part.path) if shape else part.path
        if path is not None:
            for key, bounds in (("value", part.value), ("count", part.count)):
                low[path, key] += bounds[0]
                high[path, key] += bounds[1]
    nodes = {tree_stack(tree, node): node for node in range(len(tree))}
    assert len(nodes) == len(tree)
    assert nodes.keys() >= {path for (path, _), least in low.items() if least}
    for key, column in (("value", tree.own), ("count", tree.own_count)):
        for path, node in nodes.items():
            assert low[path, key] <= column[node] <= high[path, key]
