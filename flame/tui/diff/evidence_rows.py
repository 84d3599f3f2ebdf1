"""Write what is known of whether a frame has changed beyond noise."""

from __future__ import annotations

import math
from collections.abc import Iterator

from flame.core.compare.amounts import format_ratio
from flame.core.compare.colouring import Colouring
from flame.core.compare.evidence import SAMPLES, Evidence, EvidenceLevel
from flame.core.compare.noise.beyond_noise import BeyondNoise, FrameVerdict
from flame.core.units import format_count, format_counted
from flame.tui.session.tree_view import TreeView

_WORDS = {
    FrameVerdict.UNCLEAR: "unclear",
    FrameVerdict.SAME: "same within limits",
    FrameVerdict.SMALL: "beyond noise, but small",
    FrameVerdict.WORST: "changed on the worst rank alone",
    FrameVerdict.CHANGED: "changed beyond noise",
}

_LEAST_CHANCE = 0.001


def evidence_word(view: TreeView, colouring: Colouring) -> str:
    """Say in a word what is known of ``view``'s selected frame; empty where nothing is."""
    found, node = colouring.found, _node_of(view)
    return "" if found is None or node < 0 else _word(found, node)


def evidence_rows(view: TreeView, colouring: Colouring) -> Iterator[tuple[str, str]]:
    """Say whether ``view``'s selected frame has changed beyond noise, and what tells so.

    Of callers nothing is said: what they have here is a part of what is tested.
    """
    found, node = colouring.found, _node_of(view)
    if found is None:
        yield "evidence", "…" if colouring.marks else ""
    elif node >= 0 and found.verdict[node]:
        yield from _of_node(_word(found, node), found.evidence, node)
    elif node >= 0:
        yield "evidence", "none"
        yield "", found.evidence.why or "too little to tell from"
    elif not view.tree.layout.inverted:
        yield "evidence", _at_places(found, int(view.tree.frame[view.cursor.node]))


def _node_of(view: TreeView) -> int:
    """The node of the union that the selected frame is all of; -1 where it has several places."""
    whole, node = view.part_of, view.cursor.node
    if whole is None:
        return node
    places = whole.places(int(view.tree.frame[node]))
    return int(places[0]) if node == 0 and len(places) == 1 else -1


def _word(found: BeyondNoise, node: int) -> str:
    return _WORDS.get(FrameVerdict(int(found.verdict[node])), "")


def _of_node(word: str, found: Evidence, node: int) -> Iterator[tuple[str, str]]:
    samples = SAMPLES[EvidenceLevel(int(found.level[node]))]
    base, new = (format_count(int(column[node])) for column in (found.base, found.new))
    many = f"{base} {samples} each" if base == new else f"{base} and {new} {samples}"
    yield "evidence", f"{word}: {many}"
    chance = float(found.adjusted[node])
    yield "chance", _chance(chance) if math.isfinite(chance) else ""
    longer = float(found.probability[node])
    yield "NEW > BASE", f"in {100 * longer:.0f} of 100 pairs" if math.isfinite(longer) else ""
    low, high = float(found.low[node]), float(found.high[node])
    of_ranks = found.level[node] == EvidenceLevel.RANKS
    yield (
        "medians" if of_ranks else "95 % within",
        f"{_percent(low)} … {_percent(high)}" if math.isfinite(low + high) else "",
    )


def _chance(chance: float) -> str:
    """How likely the change is mere chance, among all frames that are tested."""
    return f"{100 * chance:.1f} %" if chance >= _LEAST_CHANCE else f"<{100 * _LEAST_CHANCE:g} %"


def _percent(part: float) -> str:
    return format_ratio(part) if round(100 * part, 1) else "0.0 %"


def _at_places(found: BeyondNoise, frame: int) -> str:
    """How many places of a frame have changed beyond noise, where any is tested."""
    places = found.places
    tested = int(places.tested[frame])
    changed = int(places.grown[frame] + places.shrunk[frame])
    if not tested:
        return "none"
    of = format_counted(tested, "place", "places")
    return f"changed beyond noise at {format_count(changed)} of {of}"
