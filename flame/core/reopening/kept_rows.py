"""Read the rows of a kept profile when they are asked for."""

from __future__ import annotations

from flame.core.columns import I4, Column
from flame.core.lazy_dataclass import dataclass
from flame.core.reopening.column_file import ColumnFile, DamagedError
from flame.core.reopening.trace_again import TraceAgain


@dataclass(frozen=True, eq=False)
class KeptRows:
    """The rows in ``file``, of so many groups; of the trace itself where a column is damaged."""

    file: ColumnFile
    number_of_groups: int
    again: TraceAgain

    def __len__(self) -> int:
        return self.file.length("rows.group")

    def groups(self) -> I4:
        """Return the group of each row."""
        try:
            groups: I4 = self.file.read("rows.group", "i4")
        except (DamagedError, OSError):
            return self.again.profile().activities.groups.of_row
        if len(groups) and not 0 <= groups.min() <= groups.max() < self.number_of_groups:
            self.file.when_damaged()
            return self.again.profile().activities.groups.of_row
        return groups

    def activity_column(self, name: str) -> Column:
        """Return a column of `Activities` that groups do not have."""
        try:
            return self.file.read(f"rows.{name}", "i8")
        except (DamagedError, OSError):
            column: Column = getattr(self.again.profile().activities, name)
            return column
