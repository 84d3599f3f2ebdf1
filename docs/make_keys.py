"""Writes the table of keys into README.md, from the bindings themselves."""

from __future__ import annotations

from pathlib import Path

from flame.tui.keys import COMMANDS

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- keys -->\n", "<!-- /keys -->"


def table() -> str:
    """The keys as a Markdown table."""
    rows = [f"| `{command.shown}` | {command.help} |" for command in COMMANDS if command.help]
    return "\n".join(["| key | |", "|---|---|", *rows, ""])


def with_keys(text: str) -> str:
    """``text`` with its table of keys as it should be."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    README.write_text(with_keys(README.read_text(encoding="utf-8")), encoding="utf-8")
