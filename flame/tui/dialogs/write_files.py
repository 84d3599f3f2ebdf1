"""Write what the app shows to files, and a note of what was written."""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from textual.app import App

from flame.core.errors import NoMatchError
from flame.core.files.atomic import OccupiedError, atomic_output
from flame.core.files.packed_output import packing_problem
from flame.core.lazy_dataclass import dataclass
from flame.core.loading.inputs import Inputs
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.project import project
from flame.core.projection.selection import Selection
from flame.core.units import format_counted, format_value
from flame.exporters import SUFFIXES
from flame.exporters.write import Exported, open_export, write
from flame.tui.toolkit.text import printable


class ExportFormat(NamedTuple):
    """A format to export to, how it is called, the end of its files' names, and who reads it."""

    key: str
    title: str
    suffix: str
    about: str


FORMATS = (
    ExportFormat(
        "folded", "folded", SUFFIXES["folded"], "one line per stack: flamegraph.pl and many"
    ),
    ExportFormat(
        "speedscope", "speedscope", SUFFIXES["speedscope"], "for https://www.speedscope.app"
    ),
    ExportFormat("pprof", "pprof", SUFFIXES["pprof"], "for go tool pprof, Pyroscope, Parca"),
    ExportFormat("svg", "SVG", SUFFIXES["svg"], "a flame graph to zoom and search in a browser"),
    ExportFormat("html", "HTML", SUFFIXES["html"], "a page: the flame graph, a table, a summary"),
    ExportFormat("screen", "shot", ".screen.svg", "a picture of the screen as it is"),
)


class OutputFile(NamedTuple):
    """A file to write: ``problem`` says why it cannot be, ``there`` that it would be replaced."""

    path: str
    problem: str = ""
    there: bool = False


def output_file(name: str, inputs: Inputs) -> OutputFile:
    """Check what ``name``, as typed, stands for; ``inputs`` are never written to."""
    path = os.path.expanduser(name.strip())  # noqa: PTH111 (Path fails on unknown users)
    if not path:
        return OutputFile(path, "type a file name")
    try:
        return OutputFile(path, _problem(path, inputs), os.path.lexists(path))
    except OSError as error:
        return OutputFile(path, f"cannot be written: {error.strerror}")


def _problem(path: str, inputs: Inputs) -> str:
    if problem := packing_problem(path):
        return problem
    folder = Path(path).parent
    if not folder.is_dir():
        return f"there is no folder {folder}"
    with suppress(FileNotFoundError):
        Path(path).lstat()  # Raises for a name that no file can have; is_dir may not.
    if Path(path).is_dir() or path.endswith(os.sep):
        return "that is a folder"
    if os.path.lexists(path):
        return _occupied(Path(path), inputs)
    return "" if os.access(folder, os.W_OK | os.X_OK) else f"the folder {folder} is read-only"


def _occupied(path: Path, inputs: Inputs) -> str:
    """Why what is at ``path`` must not be replaced, if it must not."""
    if inputs.hold(path):
        return "that is the trace itself"
    if path.exists() and not path.is_file():
        return "that is no ordinary file"
    return "" if os.access(path, os.W_OK) or not path.exists() else "that file is read-only"


@dataclass(frozen=True)
class ExportedStacks:
    """Stacks to write: those of ``tree``, or of all of ``profile`` if that is None."""

    profile: Profile
    name: str
    tree: StackTree | None

    def write(self, format: str, path: str, *, replace: bool) -> str:
        """Write them to ``path``; a note. InputError where that fails, NoMatchError without any.

        What is there is only replaced where that has been agreed to.
        """
        is_part = self.tree is not None
        tree = project(self.profile, Selection()) if self.tree is None else self.tree
        total = int(tree.total[0])
        if not total:
            raise NoMatchError(f"nothing to export: {tree.metric.title} is zero")
        with open_export(path, format, replace=replace) as file:
            exported = Exported(tree, self.profile, Selection(), self.name, is_part)
            warnings = write(exported, format, file)
        amount = f"{tree.metric.title} {format_value(total, tree.metric.unit)}"
        stacks = format_counted(int((tree.own > 0).sum()), "stack", "stacks")
        return "; ".join([f"wrote {path}: {stacks}, {amount}", *warnings])


def write_picture(svg: str, path: str, *, replace: bool) -> str:
    """Write ``svg`` to ``path``; a note. InputError where that fails."""
    with atomic_output(path, replace=replace) as file:
        file.write(svg.encode("utf-8", "backslashreplace"))
    return f"wrote {path}: the screen as SVG"


def free_name(stem: str, suffix: str) -> str:
    """Join ``stem`` and ``suffix``, with a number between them if that is there already."""
    names = (f"{stem}{'' if number == 1 else f'-{number}'}{suffix}" for number in count(1))
    return next(name for name in names if not os.path.lexists(name))


def save_screenshot(app: App[Any], inputs: Inputs) -> str:
    """Save the screen as SVG in the current folder, under a free name, and return that.

    InputError where that cannot be written.
    """
    svg = app.export_screenshot(title=printable(inputs.title))
    while True:
        name = free_name(inputs.stem, FORMATS[-1].suffix)
        with suppress(OccupiedError):  # Another flame was faster.
            write_picture(svg, name, replace=False)
            return name
