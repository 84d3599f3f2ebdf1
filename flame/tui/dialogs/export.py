"""Ask for the format, scope and file of an export, and write it beside the event loop."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input

from flame.core.errors import FlameError
from flame.core.loading.inputs import Inputs
from flame.core.model.profile import Profile
from flame.tui.dialogs.file_dialog import FileDialog
from flame.tui.dialogs.write_files import (
    FORMATS,
    ExportedStacks,
    ExportFormat,
    OutputFile,
    output_file,
    write_picture,
)
from flame.tui.session.session import Projection
from flame.tui.toolkit.background import hand_in
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.text import cut, cut_start, printable, wrap

SCOPES = ("what is shown", "everything")

_NAME = 32
_SCOPE_LINES = 2
_WRITING = "writing …"
_ALL_ABOUT = "all of the trace, with its usual levels"
_SHOWN_ABOUT = "the metric, levels, filters and zoom on screen"


def shown_about(shown: Projection) -> str:
    """Say which stacks are on screen, in words."""
    view, filters = shown.view, len(shown.selection.where)
    words = [f"the {shown.metric.title}, levels and order on screen"]
    words += [f"{filters} filter{'' if filters == 1 else 's'}"] if filters else []
    words += ["numbers folded"] if shown.folds_numbers else []
    node = view.viewport.zoom.node
    words += [f"below {cut(view.name(node), _NAME)}"] if node else []
    words += (
        ["not only the stretch on screen"]
        if view.viewport.zoom != view.viewport.zoom_of(node)
        else []
    )
    return ", ".join(words)


class ExportDialog(FileDialog[str | None]):
    """Write a file and return a note of it, or None if the user left before that."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,e", "leave", "leave without writing anything", key_display="esc q"),
    ]

    class Written(Message):
        """A note of the file that is there now, or why it is not."""

        def __init__(self, outcome: str | Exception) -> None:
            super().__init__()
            self.outcome = outcome

    def __init__(self, inputs: Inputs, profile: Profile, shown: Projection) -> None:
        super().__init__(format=[format.title for format in FORMATS], scope=SCOPES)
        self._inputs = inputs
        self._profile = profile
        self._shown = shown
        self._suffix = FORMATS[0].suffix
        self._agreed = ""
        self._writing = False

    def on_mount(self) -> None:
        self.entry.value = self._usual_name

    @property
    def _format(self) -> ExportFormat:
        return FORMATS[self.choices["format"].chosen]

    @property
    def _is_picture(self) -> bool:
        return self._format.key == "svg"

    @property
    def _everything(self) -> bool:
        return self.choices["scope"].chosen == 1

    @property
    def _usual_name(self) -> str:
        return self._inputs.stem + self._format.suffix

    # What is shown

    def head(self, width: int) -> list[Line]:
        return [[Piece("Export", "strong")], []]

    def foot(self, width: int) -> list[Line]:
        scope = wrap(self._scope_about(), width, _SCOPE_LINES)
        about = [self._format.about, *scope, *[""] * (_SCOPE_LINES - len(scope))]
        return [[], *([Piece(cut_start(text, width), "dim")] for text in about)]

    def _scope_about(self) -> str:
        """Which stacks will be written, in words."""
        if self._is_picture:
            return ""
        if self._everything:
            return _ALL_ABOUT
        return shown_about(self._shown)

    def hint(self) -> str:
        if self._writing:
            return _WRITING
        return "enter write · ← → choose · ↑ ↓ field · esc leave"

    def terms(self) -> list[tuple[str, str]]:
        formats = [(format.title, format.about) for format in FORMATS]
        return [*formats, (SCOPES[0], _SHOWN_ABOUT), (SCOPES[1], _ALL_ABOUT)]

    # Choosing

    def turned(self) -> None:
        """Give the file's name the end of the format, if it had that of the one before."""
        before, self._suffix = self._suffix, self._format.suffix
        self.choices["scope"].disabled = self._is_picture
        if self.entry.value.endswith(before):
            self.entry.value = self.entry.value.removesuffix(before) + self._suffix
        self._check()

    @on(Input.Changed)
    def _typed(self) -> None:
        self._agreed = ""
        self._check()

    def _check(self) -> OutputFile:
        """Say what is wrong with the name, if anything."""
        target = output_file(self.entry.value, self._inputs)
        self.note = target.problem or ("is there already" if target.there else "")
        self.draw()
        return target

    def action_leave(self) -> None:
        if not self._writing:
            self.dismiss(None)

    # Writing

    @on(Input.Submitted)
    def action_write(self) -> None:
        """Write, but replace what is there only when asked for a second time."""
        target = self._check()
        if target.problem or self._writing:
            return
        if target.there and self._agreed != target.path:
            self._agreed = target.path
            self.note = "is there: enter again replaces it"
            self.draw()
            return
        self._writing, self.note = True, ""
        self.draw()
        if self._is_picture:
            self.query_one("#box").display = False
            self.call_after_refresh(self._picture, target)
        else:
            format = self._format.key
            self._start(lambda: self._stacks.write(format, target.path, replace=target.there))

    def _picture(self, target: OutputFile) -> None:
        """Save the screen, from which this dialog has been taken."""
        svg = self.app.export_screenshot(title=printable(self._inputs.title))
        self._start(lambda: write_picture(svg, target.path, replace=target.there))

    @property
    def _stacks(self) -> ExportedStacks:
        view = self._shown.view
        part = None if self._everything else view.tree.restrict_to(view.viewport.zoom.node)
        return ExportedStacks(self._profile, self._inputs.title, part)

    def _start(self, write: Callable[[], str]) -> None:
        """Run ``write`` beside the event loop."""

        def work() -> None:
            outcome: str | Exception
            try:
                outcome = write()
            except Exception as error:
                outcome = error
            hand_in(self.Written(outcome), self.post_message)

        Thread(target=work, daemon=True).start()

    def on_export_dialog_written(self, message: Written) -> None:
        if isinstance(message.outcome, str):
            self.dismiss(message.outcome)
            return
        if not isinstance(message.outcome, FlameError):
            raise message.outcome
        self.query_one("#box").display = True
        self._writing, self.note = False, str(message.outcome)
        self.draw()
