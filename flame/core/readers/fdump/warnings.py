"""Warn of what is wrong with a dump: damage, dropped records, and how it ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from flame.core.readers.fdump.chunks import Chunks
from flame.core.readers.fdump.context import DumpContext
from flame.core.readers.fdump.layout import FULL, KINDS, RUNNING, STOPPED, DumpHeader
from flame.core.readers.fdump.records import Records
from flame.core.readers.fdump.vocabulary import STALL_REASON
from flame.core.units import format_counted

_LONGEST = 60
_LONGEST_NOTE = 1_000
_MOST_NOTES = 20
_UNKNOWN = 0
# DropCause in dump.h
_CAUSES = {
    _UNKNOWN: "the reason is not known",
    1: "the disk was full",
    2: "the recording had reached its largest size (--max-size, or ulimit -f)",
    3: "CUPTI dropped them: its buffers were full",
    4: "there was no memory for them",
    7: "CUPTI has no times for them: they had not ended, or its memory on the GPU was used up",
    8: "CUPTI gave times for them that cannot be: of another clock, or ends before starts",
}
_NAME_LIMIT = 5
_SAMPLES_LOST = 6
_COUNTED_APART = (_NAME_LIMIT, _SAMPLES_LOST)


class Losses:
    """Counts records that could not be written, by cause."""

    def __init__(self) -> None:
        self.drops: Counter[int] = Counter()

    def learn(self, records: Records) -> None:
        """Add the counts in ``records``."""
        table = records.table("drop", ("cause", "count"))
        for cause, count in zip(table["cause"].tolist(), table["count"].tolist(), strict=True):
            known = cause in _CAUSES or cause in _COUNTED_APART
            self.drops[cause if known else _UNKNOWN] += max(count, 0)


def dump_warnings(chunks: Chunks, context: DumpContext, losses: Losses) -> Iterator[str]:
    """Yield a line for each thing that the reader of a flame graph has to know of a dump."""
    yield from _stop_warnings(chunks.header)
    yield from _end_warnings(chunks, context)
    yield from _sampling_warnings(chunks, context)
    yield from _content_warnings(chunks, context, losses)


def growing_dump_warnings(chunks: Chunks, context: DumpContext, losses: Losses) -> Iterator[str]:
    """Yield the warnings of a dump that may still be growing, which is no reason for one."""
    yield from _stop_warnings(chunks.header)
    yield from _content_warnings(chunks, context, losses)


def _content_warnings(chunks: Chunks, context: DumpContext, losses: Losses) -> Iterator[str]:
    yield from _damage_warnings(chunks, context)
    yield from _drop_warnings(chunks.header, losses)
    yield from _library_notes(context.vocabulary.facts.get("note", ()))
    yield from context.time_warnings()


def _stop_warnings(header: DumpHeader) -> Iterator[str]:
    if header.flags & FULL:
        yield "recording stopped before the program ended: there was no more room for it"
    if header.flags & STOPPED:
        reason = "as it was told to (--duration, attach --stop)"
        yield f"recording stopped before the program ended, {reason}"


def _end_warnings(chunks: Chunks, context: DumpContext) -> Iterator[str]:
    # Forked workers end so, and nothing is missing: what they wrote themselves is there.
    forked_worker = "forked_from" in context.vocabulary.facts and not chunks.count("launch")
    if chunks.header.state == RUNNING and not forked_worker:
        yield (
            "still being written, or ended without saying so (killed, interrupted, os._exit, "
            "exec): GPU work of its last moments may be missing"
        )


def _sampling_warnings(chunks: Chunks, context: DumpContext) -> Iterator[str]:
    # The library names stall reasons as soon as CUPTI has let sampling begin.
    began = context.vocabulary.has_names(STALL_REASON)
    if began and chunks.count("kernel") and not chunks.count("sample"):
        yield "PC sampling had begun, but CUPTI gave no samples of any kernel"


def _damage_warnings(chunks: Chunks, context: DumpContext) -> Iterator[str]:
    have, tail = chunks.size(), chunks.header.tail
    if have < tail:
        yield f"cut off: {have:,} of {tail:,} bytes are there"
    spoilt = chunks.count_lost() + chunks.unreadable + context.vocabulary.texts.damaged
    if spoilt:
        pieces = format_counted(spoilt, "piece", "pieces")
        yield f"damaged: {pieces} of it cannot be read, or not wholly: left out"
    unknown = [key for key in chunks.layouts if key not in KINDS and chunks.count(key)]
    if unknown:
        count = sum(map(chunks.count, unknown))
        names = ", ".join(unknown)[:_LONGEST]
        are = format_counted(count, "record is", "records are")
        yield f"{are} of kinds that this flame does not know ({names}): left out"
    if context.stacks.lost:
        are = format_counted(context.stacks.lost, "stack is", "stacks are")
        yield f"{are} not whole: [lost] stands for what is missing"


def _library_notes(notes: Sequence[str]) -> Iterator[str]:
    """Yield the notes that the library has written; each comes once, and there are few."""
    for note in notes[:_MOST_NOTES]:
        yield note if len(note) <= _LONGEST_NOTE else f"{note[:_LONGEST_NOTE]}…"
    if more := notes[_MOST_NOTES:]:
        yield f"{format_counted(len(more), 'more note', 'more notes')} in the dump: left out"


def _drop_warnings(header: DumpHeader, losses: Losses) -> Iterator[str]:
    counts = losses.drops.copy()
    counts[_UNKNOWN] += max(header.dropped - counts.total(), 0)
    # Which of the reasons it was is written when the dump ends.
    full = header.flags & FULL and header.state == RUNNING
    reasons = _CAUSES | ({_UNKNOWN: "there was no more room for them"} if full else {})
    if names := counts.pop(_NAME_LIMIT, 0):
        yield (
            f"{names:,} NVTX domains, strings or schemas more than the program may name: "
            "[further domains] and [further strings] stand for them"
        )
    if often := counts.pop(_SAMPLES_LOST, 0):
        times = format_counted(often, "time", "times")
        yield (
            f"PC samples are missing: {times} CUPTI could give no more until sampling began anew; "
            "how many is not known"
        )
    for cause, count in counts.items():
        if count:
            records = format_counted(count, "record", "records")
            yield f"{records} could not be written: {reasons[cause]}"
