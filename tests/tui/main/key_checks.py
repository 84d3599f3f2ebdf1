"""What every key of the main screen does, by command and view, and what shows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from flame.core.projection.filters import HideFrames, HideStacks, ShowFrom, ShowStacks
from flame.core.projection.named_levels import NAMED_LEVELS
from flame.tui.dialogs.export import ExportDialog
from flame.tui.dialogs.filters import FiltersDialog
from flame.tui.dialogs.levels import LevelsDialog
from flame.tui.dialogs.metrics import MetricDialog
from flame.tui.report.export import ReportExportDialog
from flame.tui.report.pane import ReportPane
from flame.tui.shell.command import Command, id_of
from flame.tui.timeline.pane import TimelinePane
from flame.tui.toolkit.dialog.page import Page
from flame.tui.toolkit.lines import Lines, RowView
from flame.tui.views.pane import NOT_HERE
from flame.tui.views.top_pane import TopPane
from flame.tui.widgets.help_page import HelpPage
from tests.tui.conftest import User

VIEWS = ("icicle", "sandwich", "top", "timeline", "report")
START = "model.layers.1"
"""The frame that is selected before every key: with neighbours, children, and a frame above."""

BODY = {
    "icicle": "#icicle",
    "sandwich": "#callees",
    "top": "#table",
    "timeline": "#timeline-rows",
    "report": "#report-list",
}


class Seen(NamedTuple):
    """What a key may change, as far as a user can see it."""

    view: str
    selected: tuple[int, ...]
    zoom: object
    where: object
    levels: tuple[str, ...]
    metric: str
    layout: object
    names: str
    colours: str
    search: str
    typing: bool
    over: type
    clipboard: str
    theme: str
    details: tuple[bool, int]
    scroll: int
    brush: object
    table: object
    report: object
    files: frozenset[str]
    note: str


def look(user: User) -> Seen:
    """What the screen shows now."""
    screen, app = user.screen, user.app
    shown, pane = screen.shown, screen.pane
    time = screen.query_one(TimelinePane)._time
    top = screen.query_one(TopPane)
    own = (time.lanes.lane, time.cursor.item) if time and pane.name_ == "timeline" else ()
    window = time.viewport.window if time and pane.name_ == "timeline" else None
    details = screen.query_one("#details", Lines)
    return Seen(
        pane.name_,
        (screen.view.number, screen.view.cursor.node, *own),
        (window, screen.view.viewport.zoom, shown.view.viewport.zoom),
        shown.selection.where,
        shown.view.tree.levels,
        shown.metric.key,
        shown.selection.layout,
        shown.selection.naming.kernel_names,
        shown.selection.colours,
        screen.finder.query.text if screen.finder.query else "",
        screen.query_one("#search").has_focus,
        type(app.screen),
        app.clipboard,
        app.theme,
        (screen.has_class("-no-details"), details.scroll_offset.y),
        screen.query_one(BODY[pane.name_], RowView).scroll_offset.y,
        (time.viewport.brush, time.viewport.marked) if time else None,
        (top._wanted, top._kind),
        report_of(screen.parts.report),
        frozenset(path.name for path in Path.cwd().iterdir()),
        "".join(piece.text for piece in screen._note).strip(),
    )


def report_of(pane: ReportPane) -> object:
    """What is chosen of the report, and how its tables are sorted."""
    content = pane._content
    return (pane.section, content.in_page, dict(content._sorted)) if content else None


Test = Callable[[Seen, Seen], object]


class Check(NamedTuple):
    """``first`` is pressed before; ``holds`` compares what was seen before and after the key."""

    holds: Test
    first: tuple[str, ...] = ()


def changed(*fields: str) -> Test:
    """Every one of ``fields``, and no more than them and the note, selection and zoom."""

    def holds(before: Seen, after: Seen) -> bool:
        differ = {name for name in Seen._fields if getattr(before, name) != getattr(after, name)}
        return set(fields) <= differ <= {*fields, "note", "selected", "zoom", "scroll"}

    return holds


def turned(step: int) -> Test:
    """To the view ``step`` further."""
    return lambda before, after: after.view == VIEWS[(VIEWS.index(before.view) + step) % len(VIEWS)]


def opened(dialog: type) -> Test:
    """A dialog or a page lies over the screen."""
    return lambda before, after: after.over is dialog


def noted(text: str) -> Test:
    """The status line says so."""
    return lambda before, after: text in after.note


def filtered(kind: type) -> Test:
    """There is one filter, of ``kind``."""
    return lambda before, after: (
        not before.where and [type(one) for one in after.where] == [kind]  # type: ignore[attr-defined]
    )


def levels(step: int) -> Test:
    """There is one level more, or less."""
    return lambda before, after: len(after.levels) == len(before.levels) + step


SELECTED, ZOOM = changed("selected"), changed("zoom")
NOTHING = Check(changed())
NOWHERE = Check(noted(NOT_HERE))
ANYTHING = Check(lambda before, after: after.view == before.view)
"""Pages need a deep tree: see test_app and test_sandwich. Here they only do no harm."""

EVERYWHERE: dict[str, Check] = {
    "view_next": Check(turned(1)),
    "view_previous": Check(turned(-1)),
    "findings": Check(lambda before, after: after.view == "report"),
    "sandwich": Check(lambda before, after: after.view == "sandwich"),
    "sass": Check(noted("no PC samples: --ncu, or --pc")),
    "left": Check(SELECTED, ("right",)),
    "right": Check(SELECTED, ("left",)),
    "up": Check(SELECTED, ("down",)),
    "down": Check(SELECTED, ("up",)),
    "home": Check(SELECTED, ("down", "down")),
    "end": Check(SELECTED),
    "fork": Check(SELECTED, ("home",)),
    "zoom": Check(ZOOM),
    "out": Check(ZOOM, ("enter",)),
    "escape": Check(ZOOM, ("enter",)),
    "closer": Check(ZOOM),
    "farther": Check(ZOOM, ("plus",)),
    "pan_left": Check(ZOOM, ("plus", "plus")),
    "pan_right": Check(ZOOM, ("plus", "plus", "comma")),
    "undo": Check(changed("layout"), ("c",)),
    "redo": Check(changed("layout"), ("c", "z")),
    "search": Check(changed("typing")),
    "next_match": Check(SELECTED, ("slash", *"layers|tiny", "enter")),
    "previous_match": Check(SELECTED, ("slash", *"layers|tiny", "enter")),
    "same_name": Check(lambda before, after: after.search == START != before.search),
    "filters": Check(opened(FiltersDialog)),
    "quick_only": Check(filtered(ShowStacks)),
    "quick_without": Check(filtered(HideStacks)),
    "quick_from": Check(filtered(ShowFrom)),
    "quick_hide": Check(filtered(HideFrames)),
    "steps": Check(noted("no steps in this trace")),
    "framework": Check(noted("no frames of Python or native code in this trace")),
    "metrics": Check(opened(MetricDialog)),
    "metric_next": Check(lambda before, after: (before.metric, after.metric) == ("gpu", "exposed")),
    "metric_previous": Check(
        lambda before, after: (before.metric, after.metric) == ("gpu", "host")
    ),
    "levels": Check(opened(LevelsDialog)),
    **{f"level_{level}": Check(levels(1)) for level in ("process", "thread", "device", "stream")},
    "level_python": Check(noted("this trace has no python frames")),
    "level_native": Check(noted("this trace has no native frames")),
    "level_launch": Check(levels(-1)),
    "level_nvtx": Check(levels(-1)),
    "level_shapes": Check(noted("this trace has no shapes frames")),
    **{f"level_{level}": Check(levels(1)) for level in ("phase", "category")},
    "level_cause": Check(noted("this trace has no cause frames")),
    "level_kernel": Check(levels(-1)),
    "level_rank": Check(noted("this trace has no rank frames")),
    **{f"level_{level}": Check(levels(1)) for level in ("nested", "module")},
    "level_stack": Check(noted("this trace has no stack frames")),
    **{f"level_{level}": Check(noted("no PC samples: --ncu")) for level in ("sass", "stall")},
    "kernel_names": Check(changed("names")),
    "colours": Check(changed("colours")),
    "collapse": Check(changed("layout")),
    "forward": Check(noted("no links from backward to forward operators")),
    "numbers": Check(noted("no names here that differ only in numbers")),
    "sort": Check(changed("layout")),
    "details": Check(lambda before, after: before.details[0] != after.details[0]),
    "details_up": Check(changed("details"), ("right_square_bracket",)),
    "details_down": Check(changed("details")),
    "notes": Check(opened(Page)),
    "theme": Check(changed("theme", "note")),
    "copy_name": Check(lambda before, after: after.clipboard == START),
    "copy_stack": Check(lambda before, after: after.clipboard.endswith(f"generate;{START}")),
    "copy_command": Check(
        lambda before, after: after.clipboard.startswith("flame view ") and START in after.clipboard
    ),
    "source": Check(noted("no source line is recorded")),
    "export": Check(opened(ExportDialog)),
    "screenshot": Check(changed("files", "note")),
    "help": Check(opened(HelpPage)),
}
"""By id, what happens in every view where `IN` says nothing else."""

_NUMBERS = ("name", *["second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"])

IN: dict[str, dict[str, Check]] = {
    "icicle": {
        "undo": Check(ZOOM, ("plus",)),
        "redo": Check(ZOOM, ("plus", "z")),
        "page_up": ANYTHING,
        "page_down": ANYTHING,
        "chain": Check(noted("no frames to join here")),
        "invert": Check(changed("layout")),
    },
    "sandwich": {
        "left": Check(SELECTED, ("down", "right")),
        "right": Check(SELECTED, ("down",)),
        "page_up": ANYTHING,
        "page_down": ANYTHING,
        "chain": Check(noted("all chains open")),
        "zoom": Check(ZOOM, ("down",)),
        "out": Check(ZOOM, ("down", "enter")),
        "escape": Check(ZOOM, ("down", "enter")),
        "copy_stack": Check(lambda before, after: after.clipboard.endswith(START)),
    },
    "top": {
        **dict.fromkeys(("left", "right", "out"), NOWHERE),
        "page_up": Check(SELECTED, ("end",)),
        "page_down": Check(SELECTED, ("home",)),
        "zoom": Check(lambda before, after: after.view == "sandwich"),
        "escape": Check(lambda before, after: before.search and not after.search, ("asterisk",)),
        "sort": Check(changed("table", "note")),
        "rows": Check(changed("table", "note")),
        "column_next": Check(changed("table", "note")),
        "column_previous": Check(changed("table", "note")),
        "sort_by_first": Check(changed("table", "note"), ("3",)),
        **{f"sort_by_{number}": Check(changed("table", "note")) for number in _NUMBERS},
        "parts": Check(noted("one GPU and one file")),
        "quick_hide": Check(filtered(HideFrames)),
    },
    "timeline": {
        "undo": Check(ZOOM, ("plus",)),
        "redo": Check(ZOOM, ("plus", "z")),
        "page_up": Check(SELECTED, ("pagedown",)),
        "page_down": Check(SELECTED, ("pageup",)),
        "brush": Check(changed("brush", "note")),
        "sort": NOWHERE,
        "thread_rows": Check(noted("folded")),
        "longest_gap": Check(changed("brush", "zoom")),
        "longer_gap": Check(changed("brush", "zoom"), ("T", "T")),
        "next_gap": Check(changed("brush")),
        "previous_gap": Check(changed("brush"), ("right_parenthesis", "right_parenthesis")),
    },
    "report": {
        "view_next": Check(turned(1)),
        "findings": Check(changed("report")),
        "left": Check(changed("report"), ("right",)),
        "right": Check(changed("report")),
        "up": Check(changed("report")),
        "down": Check(changed("report")),
        "home": Check(changed("report")),
        "end": Check(changed("report")),
        "page_up": Check(changed("report")),
        "page_down": Check(changed("report")),
        "zoom": Check(changed("report")),
        "escape": Check(changed("report"), ("right",)),
        "undo": Check(changed("names"), ("K",)),
        "redo": Check(changed("names"), ("K", "z")),
        "next_match": Check(changed("report"), ("slash", *"flash", "enter", "left")),
        "previous_match": Check(changed("report"), ("slash", *"flash", "enter", "left")),
        "sort": Check(changed("report", "note")),
        "column_next": Check(changed("report", "note")),
        "column_previous": Check(changed("report", "note")),
        "sort_by_first": Check(changed("report", "note"), ("3",)),
        **{f"sort_by_{number}": Check(changed("report", "note")) for number in _NUMBERS[:8]},
        **{f"sort_by_{number}": Check(noted("there are")) for number in _NUMBERS[8:]},
        "copy_name": Check(lambda before, after: after.clipboard == "kernels"),
        "copy_stack": Check(lambda before, after: after.clipboard == "kernels"),
        "copy_command": Check(lambda before, after: after.clipboard.endswith("--section kernels")),
        "export": Check(opened(ReportExportDialog)),
    },
}

ELSEWHERE = {
    "palette": "is the same binding as Textual's own: see the test of the palette",
    "quit": "see test_surroundings",
    "forget": "see test_remembered",
    "suspend": "see test_suspend",
    "words": "has no key of its own: see test_help_page",
    **{f"arrange_{named.name}": "has no key: see test_arrangements" for named in NAMED_LEVELS},
}


def name_of(command: Command) -> str:
    """As in the table of checks."""
    return id_of(command).removeprefix("flame.")


def check_of(command: Command, view: str) -> Check | None:
    """What the tables say of ``command`` in ``view``."""
    name = name_of(command)
    return IN[view].get(name) or EVERYWHERE.get(name)
