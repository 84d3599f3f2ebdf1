"""Find the columns of a source page, and parse the numbers in them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from flame.core.lazy_dataclass import dataclass
from flame.core.lazy_regex import lazy_regex
from flame.core.model.stalls import is_not_issued, is_reason, stall_of

EXPORT = "ncu --import REPORT --page source --csv --print-kernel-base mangled > FILE"
"""The command that makes what is read here, with names that fit best."""
AGAIN = f"export it again: {EXPORT}"

_TOTALS = ("warp stall sampling (all ", "sampling data (all", "# samples")
_TOTAL_METRIC = "smsp__pcsamp_sample_count"
_ADDRESS = lazy_regex(r"(?:0[xX])?0*[0-9a-fA-F]{1,15}")
_WHOLE = lazy_regex(r"([0-9]{1,18})(?:\.0{1,2}|\.0{4,18})?")
_GROUPED = lazy_regex(
    r"[0-9]{1,3}(?:([,'\u2019\u00a0\u202f ])[0-9]{3}(?:\1[0-9]{3}){0,4}|(?:\.[0-9]{3}){2,5})"
)
_NOTHING = ("", "-", "...")
_LONGEST_CELL = 40
_MOST_COLUMNS = 1_000
"""Pages have a hundred. What is not in a row is filled up to so many."""


class WrongPageError(Exception):
    """What is wrong with a page, and what to do."""


class SampleCounts(dict[str, int]):
    """Samples by the text of their cell: millions of cells are of few texts."""

    def __missing__(self, cell: str) -> int:
        count = self[cell] = parse_count(cell)
        return count


@dataclass(frozen=True)
class PageColumns:
    """The places of columns in the rows below a header, -1 for columns that are not there.

    ``reasons`` are those of samples by key of the reason.
    """

    width: int
    address: int
    sass: int
    line: int
    total: int
    reasons: dict[str, int]

    @classmethod
    def from_header(cls, header: Sequence[str]) -> PageColumns:
        """Find the columns that ``header`` names."""
        if len(header) > _MOST_COLUMNS:
            raise WrongPageError(f"{len(header):,} columns are more than any page has; {AGAIN}")
        names = [name.strip() for name in header]
        sources = [at for at, name in enumerate(names) if name == "Source"]
        line, address = _column_place(names, "Line No"), _column_place(names, "Address")
        return cls(
            len(names), address, sources[-1], line, _total_column(names), _reason_columns(names)
        )

    @property
    def has_samples(self) -> bool:
        """Whether there is a column of samples."""
        return bool(self.reasons) or self.total >= 0

    def pad(self, row: list[str]) -> list[str]:
        """Return ``row`` with a cell for each column."""
        return row + [""] * (self.width - len(row))

    @property
    def counted(self) -> list[int]:
        """The places of all numbers of samples in a row: by reason, then the total."""
        return [*self.reasons.values(), *((self.total,) if self.total >= 0 else ())]

    def check_unaddressed(self, texts: list[str], counts: SampleCounts) -> None:
        """Raise where a row of ``texts`` has samples, which have no place without an address."""
        if self.line >= 0 or self.address < 0 or self.total < 0:
            return
        if texts[self.address].strip() in _NOTHING and counts[texts[self.total]]:
            raise WrongPageError(f"samples without an address; {AGAIN}")


def _column_place(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else -1


def _reason_columns(names: Sequence[str]) -> dict[str, int]:
    """Return columns by key of the reason; of a reason with two names the first."""
    columns: dict[str, int] = {}
    for at, name in enumerate(names):
        if is_reason(name) and not is_not_issued(name):
            columns.setdefault(stall_of(name).key, at)
    return columns


def _total_column(names: Sequence[str]) -> int:
    """Return the column with all samples of an instruction."""
    for start in _TOTALS:
        for at, name in enumerate(names):
            if name.lower().startswith(start):
                return at
    return _column_place(names, _TOTAL_METRIC)


def parse_address(cell: str) -> int | None:
    """Parse the address in a cell, in hexadecimal digits; None where there is none."""
    return int(cell, 16) if _ADDRESS.fullmatch(cell := cell.strip()) else None


def parse_count(cell: str) -> int:
    """Parse the samples in a cell, with or without separators of thousands.

    Raises WrongPageError for what is no whole number. So may be ``1.234`` where thousands have dots
    and where they have none: nobody can tell.
    """
    text = cell.strip()
    if text in _NOTHING:
        return 0
    if whole := _WHOLE.fullmatch(text):
        return int(whole[1])
    if _GROUPED.fullmatch(text):
        return int(re.sub("[^0-9]", "", text))
    raise WrongPageError(
        f"{text[:_LONGEST_CELL]!r} is no number of samples; export the page "
        f"again with LC_ALL=C and --print-units base"
    )
