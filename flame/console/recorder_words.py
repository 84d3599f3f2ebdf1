"""Say what is unusual in what the recorder counted of its own doings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from flame.core.units import format_count, format_ns

_MILLISECOND = 1_000_000
# Counters of the library that are 0 where all is well: FLAME_COUNTERS in flame.h.
_STRANGE = {
    "untimed_records": "records of GPU work without times",
    "records_without_call": "records of GPU work without their call",
    "starts_before_call": "records of GPU work that begin before their call",
    "other_records": "records of kinds that are not known",
    "null_buffers": "requests of CUPTI for memory that got none",
}
_LONGEST = {
    "longest_flush_ns": ("a flush of", 1_000 * _MILLISECOND),
    "longest_callback_ns": ("a callback of", 10 * _MILLISECOND),
}


def unusual_counts(of_sources: Iterable[Mapping[str, int]]) -> Iterator[str]:
    """Yield what is strange or took long in any of the recordings, by their counters."""
    counted = list(of_sources)
    for name, words in _STRANGE.items():
        if total := sum(counts.get(name, 0) for counts in counted):
            yield f"{format_count(total)} {words}"
    for name, (words, least) in _LONGEST.items():
        if (longest := max((counts.get(name, 0) for counts in counted), default=0)) >= least:
            yield f"{words} {format_ns(longest)}"
