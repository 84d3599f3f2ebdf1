"""Say what a summary of ranks holds, for ``flame info``: who was read, when, and what is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise

from flame.core.rank_summary.rank_waits import UNKNOWN
from flame.core.rank_summary.summary import METRICS, RankInfo, RankSummary
from flame.core.rank_summary.waits_of_groups import why_no_waits
from flame.core.ranks.communication.matching import match_table
from flame.core.ranks.rank_sections.of_summary import clocks_of_summary, left_out
from flame.core.units import format_count, format_counted, format_ns, format_percent

_MOST_SPANS = 8
_MOST_HOSTS = 6
_KEPT = "gpu"
"""The metric by which is told how much of single ranks was kept."""


def rank_facts(summary: RankSummary) -> dict[str, object]:
    """Return what ``flame info --json`` says of a summary: times in ns, of day where known."""
    lacking = {key: left_out(summary, key) for key in METRICS}
    return {
        "count": len(summary),
        "lost": [one._asdict() for one in summary.lost],
        "begin_ns": min(_moments(summary, "begin"), default=None),
        "end_ns": max(_moments(summary, "end"), default=None),
        "steps": _step_facts(summary),
        "collectives": _collectives(summary),
        "waits": _wait_facts(summary),
        "clocks": _clock_facts(summary),
        "left_out": {key: int(column.sum()) for key, column in lacking.items()},
        "of": [_facts_of(summary, at, one) for at, one in enumerate(summary.info)],
    }


def _facts_of(summary: RankSummary, at: int, info: RankInfo) -> dict[str, object]:
    times = [info.begin, info.end]
    return {
        "rank": info.rank,
        "path": info.path,
        "host": info.host or None,
        "format": info.format,
        "producer": info.producer,
        "gpus": list(info.gpus),
        "begin_ns": None if info.origin is None else info.origin + times[0],
        "end_ns": None if info.origin is None else info.origin + times[1],
        "duration_ns": times[1] - times[0],
        "activities": info.activities,
        "gpu_time_ns": int(summary.rank_total[METRICS.index("gpu"), at]),
        "steps": len(info.step_numbers),
        "iteration": info.iteration or None,
        "warnings": list(info.warnings),
    }


def _moments(summary: RankSummary, name: str) -> list[int]:
    """The times of day of the ranks that know theirs."""
    return [one.origin + getattr(one, name) for one in summary.info if one.origin is not None]


def _step_facts(summary: RankSummary) -> dict[str, object] | None:
    numbers = {number for one in summary.info for number in one.step_numbers}
    if not numbers:
        return None
    ranks = sum(bool(one.step_numbers) for one in summary.info)
    told = sorted({one.iteration for one in summary.info if one.iteration})
    span = {"first": min(numbers), "last": max(numbers)}
    return {"count": len(numbers), **span, "ranks": ranks, "iteration": told}


def _collectives(summary: RankSummary) -> dict[str, int]:
    matched = match_table(summary.collectives, len(summary)).matched
    return {"number": len(matched), "matched": int(matched.sum())}


def _wait_facts(summary: RankSummary) -> dict[str, object]:
    """How long collectives waited for the last rank of each; null where ``why`` says why."""
    waits, why = summary.waits, why_no_waits(summary)
    if waits is None or why:
        return dict.fromkeys(("collectives", "wait_ns", "transfer_ns", "by_step")) | {"why": why}
    return {
        "collectives": int(waits.group_calls.sum()),
        "wait_ns": int(waits.group_wait.sum()),
        "transfer_ns": int(waits.group_transfer.sum()),
        "by_step": bool((waits.step_wait > UNKNOWN).any()),
        "why": None,
    }


def _clock_facts(summary: RankSummary) -> dict[str, int] | None:
    if (clocks := clocks_of_summary(summary)) is None:
        return None
    return {
        "ranks": len(clocks.rank),
        "apart_ns": clocks.apart,
        "error_ns": int(clocks.error.max()),
    }


# For people


def rank_lines(summary: RankSummary) -> Iterator[tuple[str, list[str]]]:
    """Yield labels, each with what is to be said under it."""
    yield "ranks", [f"{format_count(len(summary))}: {_spans(one.rank for one in summary.info)}"]
    if summary.lost:
        yield "not read", [f"{one.path}: {one.reason}" for one in summary.lost]
    if any(one.host for one in summary.info):
        yield "hosts", [_hosts(summary.info)]
    yield "recorded", [_time(summary)]
    yield "steps", [_steps(summary)]
    yield "collectives", [_communication(summary)]
    if summary.collectives.communicator.size:
        yield "waits", [_waits(summary)]
        yield "clocks", [_clock_words(summary)]
    yield "kept", [_kept(summary)]


def _spans(numbers: Iterable[int]) -> str:
    """Numbers in short: ``0–7, 9``; one that is there twice is told so."""
    counts = Counter(numbers)
    ordered = sorted(counts)
    begins = [ordered[0]] + [b for a, b in pairwise(ordered) if b > a + 1] if ordered else []
    ends = [a for a, b in pairwise(ordered) if b > a + 1] + ordered[-1:]
    found = [f"{a}–{b}" if b > a else str(a) for a, b in zip(begins, ends, strict=True)]
    again = [f"{one} {count} times" for one, count in sorted(counts.items()) if count > 1]
    words = _few(found, _MOST_SPANS)
    return f"{words} ({_few(again, _MOST_SPANS)})" if again else words


def _few(words: Sequence[str], most: int) -> str:
    more = [f"{format_count(len(words) - most)} more"] if len(words) > most else []
    return ", ".join([*words[:most], *more])


def _hosts(infos: Sequence[RankInfo]) -> str:
    found = Counter(one.host or "unknown" for one in infos)
    words = [f"{name} ({format_counted(count, 'rank', 'ranks')})" for name, count in found.items()]
    return _few(words, _MOST_HOSTS)


def _time(summary: RankSummary) -> str:
    """When and how long: of all ranks together, and of each."""
    lengths = [one.end - one.begin for one in summary.info]
    least, most = format_ns(min(lengths)), format_ns(max(lengths))
    each = f"each for {least}" if least == most else f"each for {least} to {most}"
    begins, ends = _moments(summary, "begin"), _moments(summary, "end")
    if len(summary) == 1:
        each = f"for {most}"
    if not begins:
        return f"{each}; the time of day is not known"
    together = f", {format_ns(max(ends) - min(begins))} in all" if len(summary) > 1 else ""
    return f"{_moment(min(begins))}, {each}{together}"


def _moment(ns: int) -> str:
    """A time of day as text; some that files say are none."""
    try:
        return f"{datetime.fromtimestamp(ns // 1_000_000_000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return "at no time that there is"


def _steps(summary: RankSummary) -> str:
    numbers = [number for one in summary.info for number in one.step_numbers]
    if not numbers:
        return "none"
    ranks = sum(bool(one.step_numbers) for one in summary.info)
    some = "" if ranks == len(summary) else f", on {format_counted(ranks, 'rank', 'ranks')}"
    told = sorted({one.iteration for one in summary.info if one.iteration})
    how = "".join(f", --iteration {one}" for one in told[:_MOST_HOSTS])
    return f"{format_count(len(set(numbers)))}, {min(numbers)} to {max(numbers)}{some}{how}"


def _communication(summary: RankSummary) -> str:
    counts = _collectives(summary)
    if not counts["number"]:
        return "none"
    matched, number = format_count(counts["matched"]), format_count(counts["number"])
    return f"{number}, {matched} of them matched over their ranks"


def _waits(summary: RankSummary) -> str:
    waits, why = summary.waits, why_no_waits(summary)
    if waits is None or why:
        return f"not known: {why}"
    waiting, transfer = int(waits.group_wait.sum()), int(waits.group_transfer.sum())
    part = format_percent(waiting, waiting + transfer)
    calls = format_counted(int(waits.group_calls.sum()), "call", "calls")
    return f"{format_ns(waiting)} in {calls}, {part} of their time; transfer {format_ns(transfer)}"


def _clock_words(summary: RankSummary) -> str:
    found = _clock_facts(summary)
    if found is None:
        return "not compared"
    number = format_counted(found["ranks"], "rank", "ranks")
    apart, error = (format_ns(found[key]) for key in ("apart_ns", "error_ns"))
    return f"of {number}, up to {apart} apart, told to {error}"


def _kept(summary: RankSummary) -> str:
    """What is exact, and what of single ranks was left out."""
    row = METRICS.index(_KEPT)
    whole, lacking = int(summary.rank_total[row].sum()), int(left_out(summary, _KEPT).sum())
    cells = format_counted(len(summary.cell_group), "sum", "sums")
    groups = format_counted(len(summary.group_hash), "place", "places")
    part = format_percent(whole - lacking, whole) if lacking else "all"
    share = f", {part} of the GPU time" if whole else ""
    return f"exact sums of {groups} over all ranks; of single ranks {cells}{share}"
