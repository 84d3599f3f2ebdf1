"""A terminal's screen, as far as the app uses it: moves, text and erasing, without colours."""

from __future__ import annotations

import re

from rich.cells import cell_len

_SEQUENCE = re.compile(
    r"\x1b\[(?P<cell>[\d;]*)H|\x1b\[(?P<ahead>\d*)C|\x1b\[(?P<erased>\d*)X|(?P<tail>\x1b\[K)"
    r"|(?P<clear>\x1b\[\?1049[hl]|\x1b\[2J)"
    r"|\x1b\[[?>=<]?[\d;:]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|\x1b[PX^_][^\x1b]*\x1b\\|\x1b[^\[\]PX^_]|(?P<newline>\r?\n)|(?P<text>[^\x1b\r\n]+)|\r"
)


class Screen:
    """Feed it what a program writes; ``text`` is what can be seen, line by line."""

    def __init__(self) -> None:
        self._rows: dict[int, dict[int, str]] = {}
        self._row = self._column = 0
        self._rest = ""

    def feed(self, output: str) -> None:
        """Draw ``output``; a sequence that is not complete yet waits for its end."""
        output, place = self._rest + output, 0
        while (found := _SEQUENCE.match(output, place)) is not None:
            place = found.end()
            if found["text"]:
                self._draw(found["text"])
            elif found["cell"] is not None:
                row, column = (found["cell"] or "1;1").split(";")
                self._row, self._column = int(row) - 1, int(column) - 1
            elif found["ahead"] is not None:
                self._column += int(found["ahead"] or 1)
            elif found["erased"] is not None:
                self._erase(self._column + int(found["erased"] or 1))
            elif found["tail"]:
                self._erase(max(self._rows.get(self._row, {}), default=0) + 1)
            elif found["newline"]:
                self._row, self._column = self._row + 1, 0
            elif found["clear"]:
                self._rows.clear()
        self._rest = output[place:]

    def _erase(self, end: int) -> None:
        row = self._rows.setdefault(self._row, {})
        row.update(dict.fromkeys(range(self._column, end), " "))

    def _draw(self, text: str) -> None:
        row = self._rows.setdefault(self._row, {})
        for character in text:
            width = cell_len(character)
            for cell in range(width):
                row[self._column + cell] = "" if cell else character
            self._column += width

    @property
    def text(self) -> str:
        """The lines of the screen."""
        return "\n".join(
            "".join(row.get(at, " ") for at in range(max(row, default=-1) + 1))
            for _, row in sorted(self._rows.items())
        )
