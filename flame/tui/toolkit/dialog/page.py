"""Show pages to read over the screen, and list keys with what they do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.dom import DOMNode

from flame.tui.toolkit.dialog.modal import Modal
from flame.tui.toolkit.lines import Line, Lines, Piece
from flame.tui.toolkit.text import width_of, wrap

_KEY = 16
_LINES = 40
_LAST = ("help", "leave")
"""Actions at the end of a page of keys."""


class Page(Modal[None]):
    """Show a page over the screen; any of the usual keys closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,question_mark,w,f1", "dismiss(None)"),
        Binding("up,k", "scroll(-1)"),
        Binding("down,j", "scroll(1)"),
        Binding("pageup", "scroll(-10)"),
        Binding("pagedown,space", "scroll(10)"),
    ]

    def __init__(self, source: Callable[[int], list[Line]], wide: bool = False) -> None:
        super().__init__()
        self._source = source
        self._wide = wide

    def compose(self) -> ComposeResult:
        page = Lines(lambda width, height: self._source(width), id="page")
        yield page.set_class(self._wide, "-wide")

    def on_click(self, event: events.Click) -> None:
        if event.widget is self:
            self.dismiss(None)

    def action_scroll(self, step: int) -> None:
        lines = self.query_one(Lines)
        lines.scroll_to(y=lines.scroll_offset.y + step, animate=False)


def indented(first: str, tone: str, text: str, width: int) -> list[Line]:
    """``text`` wrapped to the right of ``first``."""
    parts = wrap(text, width - len(first), _LINES)
    indents = [first, *[" " * len(first)] * (len(parts) - 1)]
    return [[Piece(i, tone), Piece(part)] for i, part in zip(indents, parts, strict=True)]


def key_rows(rows: Iterable[tuple[str, str]], width: int, column: int = _KEY) -> list[Line]:
    """List keys, or words, in a ``column`` on the left of what they do or mean."""
    heads = ((f"  {key} ".ljust(column), text) for key, text in rows)
    return [line for head, text in heads for line in indented(head, "key", text, width)]


def bindings_of(kind: type[DOMNode], root: type[DOMNode]) -> Iterator[Binding]:
    """List the bindings of ``kind`` and of what it is made from, as far as that is a ``root``."""
    for parent in reversed(kind.__mro__):
        if issubclass(parent, root):
            own: Sequence[BindingType] = parent.__dict__.get("BINDINGS", ())
            yield from (one for one in own if isinstance(one, Binding))


def key_help(
    title: list[Line], bindings: Iterable[Binding], terms: Iterable[tuple[str, str]], width: int
) -> list[Line]:
    """Return a page of what the keys of ``bindings`` do, and of what ``terms`` mean."""
    keys = explained(sorted(bindings, key=lambda one: one.action in _LAST))
    meanings = list(terms)
    column = max(width_of(word) for word, _ in (*keys, *meanings)) + 4
    lines = [*title, [], *key_rows(keys, width, column), []]
    if meanings:
        lines += [*key_rows(meanings, width, column), []]
    return [*lines, [Piece("esc goes back", "dim")]]


def explained(bindings: Iterable[Binding]) -> list[tuple[str, str]]:
    """Return how the keys of those ``bindings`` are shown that say what they do, and that."""
    return [
        (one.key_display or one.key.split(",")[0], one.description)
        for one in bindings
        if one.description
    ]
