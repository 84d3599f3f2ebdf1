"""Read a PyTorch profiler trace into a `RawTrace`."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from flame.core.errors import InputError
from flame.core.model.raw import RawTrace
from flame.core.options import LoadOptions, Progress
from flame.core.readers.kineto import metadata
from flame.core.readers.kineto.document import TraceDocument
from flame.core.readers.kineto.events import PieceDetails
from flame.core.readers.kineto.trace import TraceBuilder
from flame.core.readers.shared.file_stream import FileStream
from flame.core.units import format_counted


def read_kineto(path: Path, options: LoadOptions, progress: Progress) -> RawTrace:
    """Decode all events flame knows, in bounded memory; damage is passed over and counted.

    Raises InputError where there is not one such event, or the file cannot be read at all.
    """
    try:
        with closing(FileStream(path, progress, "reading events")) as stream:
            document = TraceDocument(stream, metadata.WANTED)
            trace = TraceBuilder(options)
            for events in document.pieces():
                trace.add(events, PieceDetails(events, document.decoder.texts))
            warnings = _damage_warnings(path, document, stream, trace.known)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    raw = trace.build(str(path), document.top)
    return replace(raw, warnings=[*warnings, *raw.warnings])


def _damage_warnings(
    path: Path, document: TraceDocument, stream: FileStream, known: bool
) -> list[str]:
    """Return warnings of damage in the file; InputError where nothing is left of it."""
    end = ""
    if document.cut_at is not None:
        place = " of the unpacked trace" if stream.packed else ""
        end = f"{stream.damage or 'cut off'} at byte {document.cut_at:,}{place}"
    if not known and end:
        raise InputError(f"{path}: {end}, before any event of a profiler: record it again")
    if not known:
        raise InputError(
            f"{path}: a Chrome trace, but not of the PyTorch profiler: no operator, kernel or "
            "Python function in it"
        )
    spoilt = document.damaged + document.decoder.bad
    warnings = [f"{end}: everything before it is shown"] if end else []
    damaged = format_counted(spoilt, "damaged event", "damaged events")
    return [*warnings, *([f"{damaged}: left out"] if spoilt else [])]
