"""The command lines that lead from rows to windows of time."""

from __future__ import annotations

import pytest

from flame.core.options import LoadOptions
from flame.core.projection.filters import Kernel, Time
from flame.core.projection.selection import select
from flame.core.report.table import Place
from flame.options.command_line import command_line
from flame.options.state import AppState
from flame.reporting.links import links

STRANGE = "123456789.123456789s/987654321.987654321s"


@pytest.mark.parametrize("path", ["a b.sqlite", f"{STRANGE}.sqlite"])
@pytest.mark.parametrize("file", ["", "-q.json"])
def test_windows_are_shown_with_some_of_what_is_around(path: str, file: str) -> None:
    link = links([path], LoadOptions(), select(where=(Kernel("a b"), Time(3, 9)), forward=True))
    for begin, end in ((400, 800), (5_000_000_000, 5_000_000_001), (10, 1_000_000), (1, 5)):
        around = Time(begin - max((end - begin) // 4, 1), end + max((end - begin) // 4, 1))
        shown = select(where=(Kernel("a b"), around), forward=True)
        line = command_line([file or path], LoadOptions(), shown, AppState(view="timeline"))
        assert link(Place(window=(begin, end), file=file)) == line
