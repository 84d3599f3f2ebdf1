"""Register the input formats: how a file of each is recognized, and how it is decoded.

A reader is imported when its format is asked for: most take longer to import than to ask.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from flame.core.errors import InputError
from flame.core.lazy_dataclass import dataclass
from flame.core.options import LoadOptions, Progress
from flame.core.readers.shared.heads import read_head, read_unpacked_head
from flame.core.readers.sqlite import MAGIC

if TYPE_CHECKING:
    from flame.core.columns import I8
    from flame.core.model.launches import LaunchDetails
    from flame.core.model.raw import RawStacks, RawTrace
    from flame.core.readers.flamesum import SummaryFile
    from flame.core.readers.ncu.result import NcuFile
    from flame.core.readers.snapshot.reader import SnapshotFile

_HEAD = 1 << 16

Decoded: TypeAlias = "RawTrace | RawStacks | NcuFile | SummaryFile | SnapshotFile"
"""What a format is decoded to; `flame.core.loading.file` makes a profile of each."""


@dataclass(frozen=True)
class FileHead:
    """The beginning of the file at ``path``, by which its format is recognized.

    Of less than the usual ``size`` the last line is left out: it may be cut. Raises InputError
    where the file cannot be read.
    """

    path: Path
    size: int = _HEAD

    @cached_property
    def packed(self) -> bytes:
        """Read the first bytes as they lie in the file."""
        return read_head(self.path)

    @cached_property
    def unpacked(self) -> bytes:
        """Read the first ``size`` bytes, unpacked where the file is packed."""
        head = read_unpacked_head(self.path, self.size)
        whole = head.rfind(b"\n") + 1 if self.size < _HEAD and len(head) >= self.size else 0
        return head[:whole] if whole else head


@dataclass(frozen=True)
class Reopening:
    """Say what has to be known to keep what a file has been read as, and to use that again.

    ``options``: the fields of `LoadOptions` on which that depends. ``is_complete``: whether nobody
    writes to the file any more, as far as it says so itself. ``read_launches`` reads how activities
    with these starts were launched; None where all of the file has to be read for that.
    """

    options: tuple[str, ...]
    is_complete: Callable[[Path], bool] = lambda path: True
    read_launches: Callable[[Path, I8], LaunchDetails] | None = None


_Decoded = TypeVar("_Decoded", bound="Decoded", covariant=True)


@dataclass(frozen=True)
class Format(Generic[_Decoded]):
    """An input format: ``remedy`` is what to do about a file whose contents make no sense.

    ``name`` is what lists call it.
    ``glance`` names the GPUs of a file that matches, as far as it says so at its beginning or in a
    small table; None where it is of another program after all. ``share`` is that of decoding in
    the time of a load; `benchmarks/load_stages.py` measures it. ``reopening`` is None where
    profiles are not kept.
    """

    name: str
    matches: Callable[[FileHead], bool]
    decode: Callable[[Path, LoadOptions, Progress], _Decoded]
    remedy: str = ""
    glance: Callable[[FileHead], tuple[str, ...] | None] = lambda head: ()
    share: float = 0.9
    reopening: Reopening | None = None


def _is_sqlite(head: FileHead) -> bool:
    return head.packed.startswith(MAGIC)


def _read_nsys_export(path: Path, options: LoadOptions, progress: Progress) -> Decoded:
    from flame.core.readers.nsys.export_file import read_export

    return read_export(path, options, progress)


def _is_packed_sqlite(head: FileHead) -> bool:
    return not _is_sqlite(head) and head.unpacked.startswith(MAGIC)


def _read_packed_export(path: Path, options: LoadOptions, progress: Progress) -> Decoded:
    from flame.core.readers.nsys.export_file import read_packed_export

    return read_packed_export(path, options, progress)


def _glance_at_packed_export(head: FileHead) -> tuple[str, ...] | None:
    from flame.core.readers.nsys.glance import names_table

    return () if names_table(head.unpacked) else None


def _read_nsys_launches(path: Path, starts: I8) -> LaunchDetails:
    from flame.core.readers.nsys.export_file import read_launches_again

    return read_launches_again(path, starts)


def _glance_at_nsys_export(head: FileHead) -> tuple[str, ...] | None:
    from flame.core.readers.nsys.glance import glance

    return glance(head.path)


def _is_nsys_report(head: FileHead) -> bool:
    from flame.core.readers.signs.nsys import looks_like_report

    return looks_like_report(head.path, head.packed)


def _read_nsys_report(path: Path, options: LoadOptions, progress: Progress) -> Decoded:
    from flame.core.readers.nsys.export_file import read_report

    return read_report(path, options, progress)


def _is_ncu_report(head: FileHead) -> bool:
    from flame.core.readers.signs.ncu import looks_like_report

    return looks_like_report(head.path, head.packed)


def _read_ncu_report(path: Path, options: LoadOptions, progress: Progress) -> NcuFile:
    from flame.core.readers.ncu.report import read_report

    return read_report(path, progress, cache=options.cache)


def _is_dump(head: FileHead) -> bool:
    from flame.core.readers.signs.fdump import is_dump

    return is_dump(head.unpacked)


def _read_dump(path: Path, options: LoadOptions, progress: Progress) -> Decoded:
    from flame.core.readers.fdump.reader import read_dump

    return read_dump(path, options, progress)


def _is_complete_dump(path: Path) -> bool:
    from flame.core.readers.fdump.tally import has_ended

    return has_ended(path)


def _is_speedscope(head: FileHead) -> bool:
    from flame.core.readers.signs.stacks import is_speedscope

    return is_speedscope(head.unpacked)


def _is_named_speedscope(head: FileHead) -> bool:
    return head.path.name.endswith(".speedscope.json")


def _read_speedscope(path: Path, options: LoadOptions, progress: Progress) -> Decoded:
    from flame.core.readers.stacks.speedscope import read_speedscope

    return read_speedscope(path, options, progress)


def _is_proton(head: FileHead) -> bool:
    from flame.core.readers.signs.stacks import is_proton

    return is_proton(head.unpacked)


def _read_proton(path: Path, options: LoadOptions, progress: Progress) -> Decoded:
    from flame.core.readers.stacks.proton import read_proton

    return read_proton(path, options, progress)


def _is_pprof(head: FileHead) -> bool:
    from flame.core.readers.signs.stacks import is_pprof

    return is_pprof(head.unpacked)


def _read_pprof(path: Path, options: LoadOptions, progress: Progress) -> Decoded:
    from flame.core.readers.stacks.pprof import read_pprof

    return read_pprof(path, options, progress)


def _is_kineto(head: FileHead) -> bool:
    from flame.core.readers.signs.kineto import is_chrome_trace

    return is_chrome_trace(head.unpacked)


def _read_kineto(path: Path, options: LoadOptions, progress: Progress) -> Decoded:
    from flame.core.readers.kineto.reader import read_kineto

    return read_kineto(path, options, progress)


def _glance_at_kineto(head: FileHead) -> tuple[str, ...] | None:
    from flame.core.readers.kineto.glance import glance

    return glance(head.unpacked)


def _is_folded(head: FileHead) -> bool:
    from flame.core.readers.stacks.folded import is_folded

    return is_folded(head.unpacked)


def _read_folded(path: Path, options: LoadOptions, progress: Progress) -> Decoded:
    from flame.core.readers.stacks.folded import read_folded

    return read_folded(path, options, progress)


def _is_ncu_csv(head: FileHead) -> bool:
    from flame.core.readers.ncu.source_csv import is_source_csv

    return is_source_csv(head.unpacked)


def _read_ncu_csv(path: Path, _: LoadOptions, progress: Progress) -> NcuFile:
    from flame.core.readers.ncu.result import NcuFile
    from flame.core.readers.ncu.source_csv import read_source_csv

    return NcuFile(path, read_source_csv(path, progress))


def _is_summary(head: FileHead) -> bool:
    from flame.core.rank_summary.signs import is_summary

    return is_summary(head.packed)


def _read_summary(path: Path, options: LoadOptions, progress: Progress) -> SummaryFile:
    from flame.core.readers.flamesum import read_summary

    return read_summary(path, options, progress)


def _is_snapshot(head: FileHead) -> bool:
    text = head.unpacked
    if not (text.startswith(b"\x80") or b'"segment' in text or b'"device_traces"' in text):
        return False
    from flame.core.readers.signs.snapshot import is_snapshot

    return is_snapshot(text)


def _read_snapshot(path: Path, options: LoadOptions, progress: Progress) -> SnapshotFile:
    from flame.core.readers.snapshot.reader import read_snapshot

    return read_snapshot(path, options, progress)


_EXPORT_AGAIN = "; export the report again"

NCU_REPORT = Format("ncu report", _is_ncu_report, _read_ncu_report)
NCU_PAGE = Format("ncu source page", _is_ncu_csv, _read_ncu_csv)

FORMATS: tuple[Format[Decoded], ...] = (
    Format(
        "nsys export",
        _is_sqlite,
        _read_nsys_export,
        _EXPORT_AGAIN,
        _glance_at_nsys_export,
        0.7,
        Reopening(("nvtx_names", "nvtx_start_end"), read_launches=_read_nsys_launches),
    ),
    Format("nsys report", _is_nsys_report, _read_nsys_report, _EXPORT_AGAIN, share=0.7),
    NCU_REPORT,
    Format(
        "nsys export",
        _is_packed_sqlite,
        _read_packed_export,
        _EXPORT_AGAIN,
        _glance_at_packed_export,
        0.75,
        Reopening(("nvtx_names", "nvtx_start_end")),
    ),
    Format(
        "dump",
        _is_dump,
        _read_dump,
        share=0.64,
        reopening=Reopening(("nvtx_names", "nvtx_start_end"), _is_complete_dump),
    ),
    Format("ranks", _is_summary, _read_summary),
    Format("memory snapshot", _is_snapshot, _read_snapshot),
    Format("pprof", _is_pprof, _read_pprof),
    Format("speedscope", _is_speedscope, _read_speedscope),
    Format("Proton", _is_proton, _read_proton),
    Format(
        "PyTorch",
        _is_kineto,
        _read_kineto,
        glance=_glance_at_kineto,
        reopening=Reopening(("nvtx_names", "forward")),
    ),
    Format("folded stacks", _is_folded, _read_folded),
    Format("speedscope", _is_named_speedscope, _read_speedscope),
    NCU_PAGE,
)
"""In the order in which they are tried, those that are recognized most certainly first."""


def find_format(head: FileHead) -> Format[Decoded] | None:
    """Return the format of the file that begins with ``head``; None where flame has none."""
    return next((format_ for format_ in FORMATS if format_.matches(head)), None)


def detect_format(head: FileHead) -> Format[Decoded]:
    """Return the format of the file that begins with ``head``; InputError where flame has none."""
    if not head.packed:
        raise InputError(f"{head.path}: the file is empty")
    if format_ := find_format(head):
        return format_
    if not head.unpacked:
        raise InputError(f"{head.path}: what is packed in it is empty")
    from flame.core.readers.unsupported import unsupported_advice

    raise InputError(f"{head.path}: {unsupported_advice(head.unpacked, head.path.name)}")
