"""Show more lines than there is room for, without a scrollbar."""

from __future__ import annotations

from flame.tui.toolkit.lines import Line, Lines, Piece, line_width

_MORE = "[ ] more"


class ScrollPane(Lines):
    """Show lines that never get fewer: that would have the whole screen laid out anew.

    So it has no scrollbar; that there is more stands at the end of its first line.
    """

    def reach(self, rows: int) -> None:
        super().reach(max(rows, self.virtual_size.height))

    def scroll(self, step: int) -> None:
        """Scroll by ``step`` lines, not beyond the last one."""
        last = max(len(self._composed) - self.inner.height, 0)
        self.scroll_to(y=min(max(self.scroll_offset.y + step, 0), last), animate=False)


def with_more(lines: list[Line], width: int, height: int) -> list[Line]:
    """``lines``, which say so if there are more of them than ``height``."""
    word = Piece(_MORE, "dim", "screen.scroll_details(1)")
    free = width - line_width(lines[0]) - len(_MORE) if lines else -1
    if len(lines) <= height or free < 1:
        return lines
    return [[*lines[0], Piece(" " * free), word], *lines[1:]]
