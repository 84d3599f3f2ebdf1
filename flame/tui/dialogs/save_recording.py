"""Ask where to save a live recording, its dumps or the stacks on screen, and save it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from threading import Event, Thread
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.timer import Timer
from textual.widgets import Input

from flame.core.errors import CancelledError, FlameError
from flame.core.loading.inputs import Inputs
from flame.core.model.profile import Profile
from flame.core.units import format_bytes, format_counted
from flame.exporters.dumps import DumpSource, copy_dumps
from flame.tui.dialogs.export import shown_about
from flame.tui.dialogs.file_dialog import FileDialog
from flame.tui.dialogs.write_files import (
    FORMATS,
    ExportedStacks,
    ExportFormat,
    OutputFile,
    free_name,
    output_file,
)
from flame.tui.session.session import Projection
from flame.tui.toolkit.background import Done, in_background
from flame.tui.toolkit.fields import progress_bar
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.text import cut_start, printable

DUMPS = ExportFormat(
    "dumps", "dump", ".flame", "all that is recorded so far: flame view opens the folder"
)

_BAR = 30
_GRACE = 1.0
"""Seconds that a copy has to clean up after itself when the app is left."""


class SaveDialog(FileDialog[str | None]):
    """Return a note of what was written, or None if the user left before that.

    ``sources`` are the dumps that are being read; without any there are only stacks to save, those
    of ``shown``. ``title`` is what the recording is called. Nothing is ever replaced.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "escape,q,S",
            "leave",
            "leave without writing anything; while it is written, stop",
            key_display="esc q",
        ),
    ]

    def __init__(
        self, sources: Sequence[DumpSource], title: str, profile: Profile, shown: Projection
    ) -> None:
        self._formats = (*([DUMPS] if sources else []), *FORMATS[:2])
        super().__init__(what=[format.title for format in self._formats])
        self._sources = sources
        self._title = title
        self._stem = re.sub(r"[^\w.+-]+", "-", title).strip("-.") or "recording"
        self._profile = profile
        self._shown = shown
        self._before = self._formats[0]
        self._copied = 0
        self._whole = 0
        self._stop = Event()
        self._thread: Thread | None = None
        self._clock: Timer | None = None

    def on_mount(self) -> None:
        self.entry.value = self._usual_name(self._format)

    def on_unmount(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(_GRACE)

    @property
    def _format(self) -> ExportFormat:
        return self._formats[self.choices["what"].chosen]

    @property
    def file_word(self) -> str:
        return "folder" if self._format is DUMPS else "file"

    def _usual_name(self, format: ExportFormat) -> str:
        return free_name(self._stem, format.suffix)

    # What is shown

    def head(self, width: int) -> list[Line]:
        return [[Piece("Save", "strong")], []]

    def foot(self, width: int) -> list[Line]:
        lines = self._progress() if self._thread else self._about()
        return [[], *([Piece(cut_start(line, width), "dim")] for line in lines)]

    def _about(self) -> tuple[str, str]:
        if self._format is DUMPS:
            return self._format.about, f"{self._number}, {format_bytes(self._bytes)} now"
        return self._format.about, shown_about(self._shown)

    def _progress(self) -> tuple[str, str]:
        if not self._whole:
            return "writing …", ""
        amount = f"{format_bytes(self._copied)} of {format_bytes(self._whole)}"
        return progress_bar(self._copied, self._whole, _BAR), amount

    @property
    def _number(self) -> str:
        return format_counted(len(self._sources), "process", "processes")

    @property
    def _bytes(self) -> int:
        return sum(source.header.tail for source in self._sources)

    def hint(self) -> str:
        if self._thread:
            return "esc stops" if self._whole else ""
        return "enter write · ← → choose · ↑ ↓ field · esc leave"

    def terms(self) -> list[tuple[str, str]]:
        return [(format.title, format.about) for format in self._formats]

    # Choosing

    def turned(self) -> None:
        """Save something else, under the same name but for its end, or under the usual one."""
        before, self._before = self._before, self._format
        if self.entry.value == self._usual_name(before):
            self.entry.value = self._usual_name(self._format)
        elif self.entry.value.endswith(before.suffix):
            self.entry.value = self.entry.value.removesuffix(before.suffix) + self._format.suffix
        self._check()

    @on(Input.Changed)
    def _check(self) -> OutputFile:
        """Say what is wrong with the name, if anything."""
        name = self.entry.value.strip()
        target = output_file(name.rstrip("/") if self._format is DUMPS else name, Inputs(()))
        if target.there:
            target = target._replace(problem="is there already: type another name")
        # While it is written, it is there already.
        self.note = "" if self._thread else target.problem
        self.draw()
        return target

    def action_leave(self) -> None:
        """Leave, or stop the copying."""
        if self._thread is None:
            self.dismiss(None)
        self._stop.set()

    # Writing

    @on(Input.Submitted)
    def action_write(self) -> None:
        target = self._check()
        if target.problem or self._thread:
            return
        self._stop.clear()
        self._copied = 0
        self._whole = self._bytes if self._format is DUMPS else 0
        work = self._copy if self._format is DUMPS else self._write
        self._thread = in_background(lambda: work(target.path), 0, self.post_message)
        self._clock = self.set_interval(0.1, self.draw)
        self.draw()

    def _copy(self, folder: str) -> str:
        copied = copy_dumps(self._sources, folder, self._report)
        return f"wrote {printable(folder)}: {self._number}, {format_bytes(copied)}"

    def _report(self, copied: int) -> None:
        """Runs in the thread; the screen looks at the number when it is drawn."""
        self._copied = copied
        if self._stop.is_set():
            raise CancelledError("stopped: nothing was written")

    def _write(self, path: str) -> str:
        shown = self._shown.view
        part = shown.tree.restrict_to(shown.viewport.zoom.node)
        stacks = ExportedStacks(self._profile, self._title, part)
        return stacks.write(self._format.key, path, replace=False)

    @on(Done)
    def _written(self, message: Done) -> None:
        self._thread = None
        if self._clock is not None:
            self._clock.stop()
        try:
            self.dismiss(str(message.result()))
        except FlameError as error:
            self.note = printable(str(error))
            self.draw()
