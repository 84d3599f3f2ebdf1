"""Draw the first minute with flame as a film, docs/first-minute.gif: `make gif`.

The app runs without a terminal, on a bundled sample; each picture of it is drawn as the terminal
would, with the key that led there below. Nothing depends on how long anything takes.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.pilot import Pilot
from textual.strip import Strip

from flame.core.loading.inputs import Inputs
from flame.core.options import LoadOptions
from flame.core.projection.labels import Naming
from flame.core.projection.selection import Selection
from flame.options.config import Config
from flame.tui.diff.app import DiffApp
from flame.tui.diff.loading import RunInputs, SideInputs
from flame.tui.diff.selection import diff_selection
from flame.tui.main.app import FlameApp
from flame.tui.main.screen import MainScreen

try:
    from PIL import Image, ImageDraw, ImageFont
except ModuleNotFoundError:
    sys.exit("make_gif.py: needs Pillow: pip install pillow")

ROOT = Path(__file__).resolve().parents[1]
FILM = ROOT / "docs" / "first-minute.gif"
TRACE = ROOT / "samples" / "decode_small.sqlite"
COLUMNS, ROWS = 100, 30
STILL = 0.5
"""Seconds after which a screen that does not change is taken to be complete."""

FONTS = (
    "DejaVuSansMono{}.ttf",
    "/usr/share/fonts/truetype/dejavu/DejaVuSansMono{}.ttf",
    "/usr/share/fonts/dejavu-sans-mono-fonts/DejaVuSansMono{}.ttf",
    "LiberationMono{}.ttf",
)
"""Where a font may be, with what its bold face is called by."""

SIZE, CELL = 13, (8, 17)
PAPER, INK, QUIET, MARK = "#111318", "#e6e6e6", "#8a8f98", "#ffb454"
COLOURS = 128
CHANGED = {"fused_moe_kernel": 0.7, "FlashAttn": 1.5}
"""The kernels of the second trace that take another time, and how many times that of the first."""

PROMPT = "$ "


Rgb = tuple[int, int, int]


class Step(NamedTuple):
    """Keys that are pressed, how they are told of, what for, and how long that is shown."""

    keys: tuple[str, ...]
    shown: str
    about: str
    seconds: float = 2.0


OPEN = (
    Step((), "", "all GPU time, by where it was launched", 2.5),
    Step(("down",), "↓", "walk down: everything about it is below", 1.2),
    Step(("down",), "↓", "walk down: everything about it is below", 1.2),
    Step(("enter",), "enter", "zoom in", 1.6),
    Step(("escape",), "esc", "zoom out", 1.0),
    Step(("slash",), "/", "search", 0.6),
    Step((*"moe",), "moe", "every place, and its share of the time", 2.0),
    Step(("enter",), "enter", "go from match to match", 1.8),
    Step(("escape",), "esc", "", 0.4),
    Step(("x",), "x", "the frame with all its callers and callees", 2.2),
    Step(("tab",), "tab", "all frames as a table", 1.7),
    Step(("tab",), "tab", "what ran when", 2.0),
    Step(("T",), "T", "the longest idle gap, and why", 2.2),
    Step(("exclamation_mark",), "!", "the report: what to do first", 3.0),
    Step(("down",), "↓", "its findings, one by one", 2.0),
    Step(("enter",), "enter", "and where to look", 2.2),
)
COMPARE = (
    Step((), "", "before and after: ▲ slower, ▼ faster", 3.0),
    Step(("tab", "tab"), "tab", "what has changed most, as a table", 2.5),
    Step(("exclamation_mark", "down", "down"), "!", "what has changed, as a report", 3.0),
)


class Picture(NamedTuple):
    """Lines of cells, what is told below them, and how long they are shown."""

    lines: list[list[Segment]]
    key: str
    about: str
    seconds: float


def typed(line: str) -> Iterator[Picture]:
    """A command line that is typed into a shell."""
    for end in (*range(0, len(line), 6), len(line)):
        text = [Segment(PROMPT, Style(color=MARK)), Segment(line[:end]), Segment("█")]
        yield Picture([text], "", "", 0.15 if end < len(line) else 0.7)


async def played(app: App[None], steps: Sequence[Step]) -> list[Picture]:
    """The pictures of ``app`` after each of ``steps``."""
    pictures = []
    async with app.run_test(size=(COLUMNS, ROWS)) as pilot:
        while not isinstance(app.screen, MainScreen):
            await pilot.pause(0.05)
        for step in steps:
            for key in step.keys:
                await pilot.press(key)
            lines = await still(pilot)
            pictures.append(Picture(lines, step.shown, step.about, step.seconds))
    return pictures


async def still(pilot: Pilot[None]) -> list[list[Segment]]:
    """The lines on the screen, once they no longer change."""
    shots: list[list[Strip]] = []
    while len(shots) < 4 or any(one != other for one, other in pairwise(shots[-4:])):
        await pilot.pause(STILL / 3)
        shots.append(pilot.app.screen._compositor.render_strips())
    return [list(strip) for strip in shots[-1]]


# Drawing


class Painter:
    """Draw pictures of terminals."""

    def __init__(self) -> None:
        self._faces = [font_called(*names) for names in (("", "-Regular"), ("-Bold",))]

    def draw(self, picture: Picture) -> Image.Image:
        """Draw the cells, and the line below them."""
        width, height = CELL
        image = Image.new("RGB", (COLUMNS * width, (ROWS + 2) * height), PAPER)
        canvas = ImageDraw.Draw(image)
        for row, line in enumerate(picture.lines[:ROWS]):
            at = 0
            for segment in line:
                at = self._write(canvas, row, at, segment)
        self._tell(canvas, picture)
        return image

    def _write(self, canvas: Any, row: int, at: int, segment: Segment) -> int:
        """Write ``segment`` from a cell on; return the cell behind it."""
        (width, height), style = CELL, segment.style or Style()
        ink, paper = colour(style.color, INK), colour(style.bgcolor, PAPER)
        if style.reverse:
            ink, paper = paper, ink
        if style.dim:
            ink = between(ink, paper)
        face, top = self._faces[bool(style.bold)], row * height
        for sign in segment.text:
            left = at * width
            box = (left, top, left + width - 1, top + height - 1)
            canvas.rectangle(box, fill=paper)
            if not block(canvas, sign, box, ink):
                canvas.text((left, top + 1), sign, font=face, fill=ink)
            at += 1
        if style.underline:
            begin = (at - len(segment.text)) * width
            canvas.line((begin, top + height - 2, at * width - 1, top + height - 2), fill=ink)
        return at

    def _tell(self, canvas: Any, picture: Picture) -> None:
        top = ROWS * CELL[1] + CELL[1] // 2
        if not picture.about and not picture.key:
            return
        key = f" {picture.key} " if picture.key else ""
        cells = len(key)
        if key:
            box = (CELL[0], top - 2, (cells + 1) * CELL[0], top + CELL[1])
            canvas.rounded_rectangle(box, 3, fill=MARK)
            canvas.text((CELL[0], top), key, font=self._faces[1], fill=PAPER)
        canvas.text(((cells + 2) * CELL[0], top), picture.about, font=self._faces[0], fill=INK)


def font_called(*faces: str) -> Any:
    """The first font that there is, of one of these faces."""
    for pattern in FONTS:
        for face in faces:
            try:
                return ImageFont.truetype(pattern.format(face), SIZE)
            except OSError:
                continue
    sys.exit("make_gif.py: needs the font DejaVu Sans Mono (Debian: fonts-dejavu-core)")


def colour(named: Any, usual: str) -> Rgb:
    """Red, green and blue of a colour of Rich; of none the usual."""
    from rich.color import Color

    found = Color.parse(usual) if named is None or named.is_default else named
    red, green, blue = found.get_truecolor()
    return red, green, blue


def between(ink: Rgb, paper: Rgb) -> Rgb:
    """The colour of dim letters: a third of the way to the paper."""
    red, green, blue = ((2 * one + other) // 3 for one, other in zip(ink, paper, strict=True))
    return red, green, blue


PARTS = "▏▎▍▌▋▊▉█"
LOWER = "▁▂▃▄▅▆▇█"


def block(canvas: Any, sign: str, box: tuple[int, int, int, int], ink: Rgb) -> bool:
    """Draw a blank or a block to the very edge of its cell; False for other signs."""
    left, top, right, bottom = box
    if sign == " ":
        return True
    if sign in PARTS:
        right = left + round((right + 1 - left) * (PARTS.index(sign) + 1) / 8) - 1
    elif sign in LOWER:
        top = bottom + 1 - round((bottom + 1 - top) * (LOWER.index(sign) + 1) / 8)
    else:
        return False
    canvas.rectangle((left, top, max(right, left), bottom), fill=ink)
    return True


def film(pictures: Sequence[Picture]) -> None:
    """Write the pictures, in colours that all of them share."""
    painter = Painter()
    drawn = [painter.draw(one) for one in pictures]
    palette = palette_of(drawn)
    flat = [one.quantize(palette=palette, dither=Image.Dither.NONE) for one in drawn]
    lengths = [round(1000 * one.seconds) for one in pictures]
    rest = flat[1:]
    flat[0].save(FILM, save_all=True, append_images=rest, duration=lengths, loop=0, optimize=False)
    seconds = sum(one.seconds for one in pictures)
    print(f"{FILM.relative_to(ROOT)}: {FILM.stat().st_size / 1e6:.2f} MB, {seconds:.0f} s")


def palette_of(pictures: Sequence[Image.Image]) -> Image.Image:
    """The colours that most of the pictures have: those of frames and letters, and some between."""
    counts = Counter[Rgb]()
    for picture in pictures:
        colours: Any = picture.getcolors(picture.width * picture.height)
        for count, found in colours:
            counts[found] += count
    common = sorted(counts, key=lambda one: (-counts[one], one))[:COLOURS]
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for one in common for part in one])
    return palette


def apps() -> Iterator[tuple[str, App[None], Sequence[Step]]]:
    """What is typed, the app that it opens, and what is pressed there."""
    config, naming = Config(recent=False), Naming("short", numbers=True)
    selection = Selection(naming=naming)
    trace = Inputs((TRACE,))
    options = LoadOptions(forward=True)
    yield f"flame {TRACE.name}", FlameApp(trace, options, selection, config=config), OPEN
    with tempfile.TemporaryDirectory() as folder:
        pair = Path(folder, "before.sqlite"), Path(folder, "after.sqlite")
        for path in pair:
            shutil.copy(TRACE, path)
        change(pair[1])
        before, after = ([RunInputs(Inputs((path,)))] for path in pair)
        sides = SideInputs(before, after)
        words = [path.name for path in pair]
        compared = diff_selection(selection)
        app = DiffApp(sides, options, compared, words, config=config)
        yield f"flame diff {' '.join(words)}", app, COMPARE


def change(trace: Path) -> None:
    """Have some kernels take another time, as if the program had been worked on."""
    with closing(sqlite3.connect(trace)) as db:
        for name, factor in CHANGED.items():
            db.execute(
                "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = start + CAST((end - start) * ? AS INT)"
                " WHERE demangledName IN (SELECT id FROM StringIds WHERE value LIKE ?)",
                (factor, f"%{name}%"),
            )
        db.commit()


@contextmanager
def at_nobodys_home() -> Iterator[None]:
    """Neither settings nor history of whoever runs this."""
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as empty:
        os.environ |= {"XDG_STATE_HOME": empty, "XDG_CONFIG_HOME": empty, "XDG_CACHE_HOME": empty}
        os.environ |= {"COLORTERM": "truecolor", "TERM": "xterm-256color"}
        yield


def main() -> None:
    """Draw the film."""
    with at_nobodys_home():
        pictures: list[Picture] = []
        for line, app, steps in apps():
            pictures += [*typed(line), *asyncio.run(played(app, steps))]
        film(pictures)


if __name__ == "__main__":
    main()
