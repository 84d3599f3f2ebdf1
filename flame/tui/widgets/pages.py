"""Compose pages to read over the screen: the help, and what the trace covers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from flame.core.analysis.iterations import measure_iterations
from flame.core.analysis.trace_summary import TraceSummary, summarize
from flame.core.analysis.words.formats import NVTX, Terms, level_word, reworded
from flame.core.analysis.words.iterations import count_words, length_words, outside_words
from flame.core.efficiency.colouring import SIGNS, STEPS, STRENGTHS
from flame.core.model.frames import Kind
from flame.core.model.grouping import process_name
from flame.core.model.profile import Profile
from flame.core.names.kernel_category import CATEGORIES
from flame.core.units import format_count, format_ns, format_value
from flame.tui.shell.command import Command
from flame.tui.shell.commands import GROUPS_OF_ALL, MOUSE, Groups, grouped
from flame.tui.toolkit.dialog.page import indented, key_rows
from flame.tui.toolkit.lines import Line, Piece, line_width, side_by_side
from flame.tui.toolkit.palette import Palette
from flame.tui.toolkit.text import cut, printable, wrap
from flame.tui.widgets.legend import Legend, LegendColour, legend_body

_FACT = 18
_LINES = 40
_TWO_COLUMNS = 100
_LEFT = 5
"""Groups of keys in the left column of the help."""

_SHOWN_KINDS = (
    *(Kind.PYTHON, Kind.NATIVE, Kind.LAUNCH, Kind.NVTX, Kind.KERNEL),
    *(Kind.SASS, Kind.STALL, Kind.MEMCPY, Kind.GRAPH),
)
"""Kinds whose colours the help shows."""

_Section = tuple[str, Iterable[tuple[str, str]]]

_COVERED = {
    "launch": "launching API call",
    "python": "Python frames",
    "native": "native frames",
    "sass": "SASS instructions",
}
"""What of the GPU time may be known, but for ranges, which are called as the trace has them."""


def help_lines(
    commands: Sequence[Command],
    palette: Palette,
    width: int,
    terms: Terms = NVTX,
    reading: Sequence[Line] | None = None,
) -> list[Line]:
    """List all keys, what the mouse does, how to read the picture; in two columns if they fit.

    ``terms`` are the words for ranges, ``reading`` what is said of a picture that is no tree of one
    trace.
    """
    if reading is None:
        reading = _reading(palette, width, terms)
    commands = [one._replace(help=reworded(one.help, terms)) for one in commands]
    sections: list[_Section] = [*_keys(commands, GROUPS_OF_ALL), ("Mouse", MOUSE)]
    if width < _TWO_COLUMNS:
        return [*_sections(sections, width), *reading, []]
    half = (width - 2) // 2
    left, right = sections[:_LEFT], sections[_LEFT:]
    both = side_by_side(_sections(left, half), _sections(right, width - half - 2), half + 2)
    return [*both, *reading, []]


def _keys(commands: Sequence[Command], groups: Groups) -> list[_Section]:
    return [
        (name, [(c.shown, c.help) for c in group if c.help])
        for name, group in grouped(commands, groups)
    ]


def sections_of(commands: Sequence[Command], width: int, groups: Groups) -> list[Line]:
    """Return the keys of ``commands``, which ``groups`` have, group by group."""
    return _sections(_keys(commands, groups), width)


EFFICIENCY_LEGEND = Legend(
    (
        *(
            LegendColour(f"{sign} {step}", strength)
            for sign, step, strength in zip(SIGNS, STEPS, STRENGTHS, strict=True)
        ),
        LegendColour("unknown", 0.0),
    ),
    (
        "By efficiency (O again), where shapes of operators were recorded: the part of their time "
        "that perfect kernels would have needed, by the peak of the GPU or the bandwidth of its "
        "memory; unknown where that is not known of half of the kernels' time.",
    ),
)
"""How to read frames that are coloured by efficiency."""


def _sections(sections: Iterable[_Section], width: int) -> list[Line]:
    lines: list[Line] = []
    for title, rows in sections:
        lines += [[Piece(title, "strong")]] if title else []
        lines += key_rows(rows, width)
        lines.append([])
    return lines


def _reading(palette: Palette, width: int, terms: Terms) -> list[Line]:
    colours: Line = []
    for kind in _SHOWN_KINDS:
        word = level_word(kind.title, terms)
        colours += [Piece(" "), Piece(f" {word} ", palette.kind(kind))]
    texts = (
        "Width is the metric's share of the zoomed part. The root is on top; children stand below "
        "their parent, widest first, after what the parent holds itself. Colour is the level, its "
        "lightness the name. The line above the icicle is the whole trace: its bright part is "
        "what is zoomed, and marks are matches of the search.",
        "Frames under two cells are merged into quiet runs: enter zooms into one.",
        "Frames whose file does not say what they are have warm colours of their own, by name.",
        "sass are a kernel's instructions, stall what its warps waited for there: parts of its "
        "time in proportion to PC samples, in colours of their own by what was waited for.",
        "↻ marks ranges that were open when a CUDA graph was captured, not when it was launched.",
        "By category (O), kernels and copies have the colour of what they do:",
    )
    said = (reworded(text, terms) for text in texts)
    reading = [[Piece(f"  {part}")] for text in said for part in wrap(text, width - 2, _LINES)]
    title: Line = [Piece("Reading the picture", "strong")]
    categories = _category_legend(palette, width)
    return [title, colours, *reading, *categories, *legend_body(EFFICIENCY_LEGEND, palette, width)]


def _category_legend(palette: Palette, width: int) -> list[Line]:
    """The colours of all categories, in as many lines as they need."""
    lines: list[Line] = [[]]
    for category in CATEGORIES:
        piece = Piece(f" {category} ", palette.category(category))
        if line_width([*lines[-1], piece]) + 1 > width:
            lines.append([])
        lines[-1] += [Piece(" "), piece]
    return lines


def coverage_lines(profile: Profile, width: int, hint: str = " (p lists them)") -> list[Line]:
    """Return what was recorded, how much of the GPU time has what, and all warnings.

    ``hint`` says how to see the steps.
    """
    lines: list[Line] = [[Piece("The trace", "strong")]]
    summary = summarize(profile)
    for label, value in _facts(summary):
        lines += indented(f"  {label}".ljust(_FACT), "dim", value, width)
    if summary.gpu_time:
        lines += [[], [Piece("GPU time that has a", "strong")], *_shares(summary)]
    if summary.categories:
        lines += [[], [Piece("GPU time of kernels", "strong")], *_categories(summary)]
    if len(summary.iterations):
        lines += [[], *_steps(profile, width, hint)]
    return [*lines, [], *warning_lines(profile, width), [], [Piece("esc closes", "dim")]]


def _facts(summary: TraceSummary) -> list[tuple[str, str]]:
    meta, nodes, length = summary.meta, summary.graph_nodes, format_ns(summary.duration)
    activities = ", ".join(f"{format_count(n)} {kind}" for kind, n in summary.counts.items() if n)
    found = f"{summary.terms.all} at capture found for {nodes.captured:,}"
    graphs = f"{format_count(nodes.activities)}, {found}"
    rows = [
        *_files(summary),
        ("format", " ".join(filter(None, (meta.format, meta.schema_version)))),
        ("made by", meta.producer),
        ("rank", str(meta.rank) if meta.rank is not None and not summary.is_merged else ""),
        ("synthetic", "yes: generated, not measured" if meta.synthetic else ""),
        ("length", length if summary.timed else "not known: the file has no times"),
        ("GPUs", ", ".join(summary.device_names)),
        ("processes", ", ".join(map(process_name, summary.processes))),
        ("GPU activities", "" if summary.resolved else activities or "none"),
        *(_measured(summary) if summary.resolved else ()),
        ("graph kernels", graphs if nodes.activities else ""),
    ]
    return [(label, printable(value)) for label, value in rows if value]


def _files(summary: TraceSummary) -> list[tuple[str, str]]:
    if not summary.is_merged:
        return [("file", summary.meta.path)]
    sources = [total.source for total in summary.sources]
    return [(cut(printable(source.label), _FACT - 3), source.meta.path) for source in sources]


def _measured(summary: TraceSummary) -> Iterator[tuple[str, str]]:
    """What a file of stacks measures, in all."""
    yield summary.noun, format_count(summary.activities)
    for metric, total in summary.measures:
        yield metric.title, format_value(total, metric.unit)


def _shares(summary: TraceSummary) -> list[Line]:
    titles = _COVERED | {"nvtx": summary.terms.range}
    rows = []
    for key, (_, share) in summary.titled_coverage.items():
        numbers = f"{share.percent:6.1f} %  {format_ns(share.ns)}"
        rows.append([Piece(f"  {titles[key]}".ljust(26), "dim"), Piece(numbers)])
    return rows


def _categories(summary: TraceSummary) -> list[Line]:
    """How the GPU time of kernels is shared by what they compute."""
    rows = []
    for category, share in summary.categories.items():
        numbers = f"{share.percent:6.1f} %  {format_ns(share.ns)}"
        rows.append([Piece(f"  {category}".ljust(30), "dim"), Piece(numbers)])
    return rows


def _steps(profile: Profile, width: int, hint: str) -> list[Line]:
    """How many steps there are, how long they took, and what was launched outside of them."""
    table = measure_iterations(profile)
    rows = [
        ("there are", count_words(profile, table)),
        ("duration", length_words(table)),
        ("outside", outside_words(table)),
    ]
    title: Line = [Piece("Steps", "strong"), Piece(hint, "dim")]
    lines = [
        indented(f"  {label}".ljust(_FACT), "dim", text, width) for label, text in rows if text
    ]
    return [title, *(line for some in lines for line in some)]


def warning_lines(profile: Profile, width: int) -> list[Line]:
    """Return all warnings of the load, wrapped."""
    if not profile.warnings:
        return [[Piece("No warnings", "strong")]]
    lines: list[Line] = [[Piece("Warnings", "strong")]]
    for warning in profile.warnings:
        lines += indented("  • ", "warning", warning, width)
    return lines
