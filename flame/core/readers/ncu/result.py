"""Hold what Nsight Compute measured of profiled launches, and warn of what is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from flame.core.lazy_dataclass import dataclass
from flame.core.model.pc_samples import CodeSamples
from flame.core.model.stalls import UNKNOWN
from flame.core.names.cuda import demangle, kernel_base

COLLECT = "ncu --section SourceCounters -o REPORT …"

_FEW = 3
_LONGEST = 60
_NO_NAME = "[kernel without a name]"


@dataclass(frozen=True, eq=False)
class NcuResult:
    """The PC samples of one profiled launch of ``name`` (as the report has it).

    ``address`` is that of its first instruction. ``collected`` is false where the report has no
    columns for them. ``unlike`` instructions are
    there several times, with different samples, of which the first count. ``excess`` instructions
    have more samples by reason than the report says that they have.
    """

    name: str
    samples: CodeSamples
    address: int = 0
    collected: bool = True
    unlike: int = 0
    excess: int = 0

    @property
    def base(self) -> str:
        """The kernel's short name."""
        return kernel_base(demangle(self.name)) or _NO_NAME


@dataclass(frozen=True)
class NcuFile:
    """The results in the file at ``path``, in its order, and notes on how they were read."""

    path: Path
    results: list[NcuResult]
    notes: tuple[str, ...] = ()


def result_warnings(results: Sequence[NcuResult]) -> Iterator[str]:
    """Yield what is missing from ``results``, or wrong in them; each a text without an end."""
    bare = [result.name for result in results if not result.collected]
    if bare:
        yield f"kernels without PC samples: {list_some_names(bare)}; profile again with {COLLECT}"
    unknown = sum(_count_unknown(result.samples) for result in results)
    if unknown:
        whole = sum(result.samples.total for result in results)
        yield f"PC samples that are under no stall reason: {unknown:,} of {whole:,}"
    unlike = sum(result.unlike for result in results)
    if unlike:
        yield f"instructions listed several times, unlike each other: {unlike:,}; the first counts"
    excess = sum(result.excess for result in results)
    if excess:
        yield f"instructions with more samples by reason than in all: {excess:,}; reasons count"


def _count_unknown(samples: CodeSamples) -> int:
    if UNKNOWN not in samples.reasons:
        return 0
    return int(samples.samples[samples.reason == samples.reasons.index(UNKNOWN)].sum())


def list_some_names(names: Sequence[str]) -> str:
    """List the first few of these kernels by short name, and how many more there are."""
    short = list(dict.fromkeys(kernel_base(demangle(name)) or _NO_NAME for name in names))
    shown = [name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…" for name in short]
    more = f" and {len(shown) - _FEW:,} more" if len(shown) > _FEW else ""
    return ", ".join(shown[:_FEW]) + more
