"""Share what dialogs have that export something: a format, a scope, a file, and writing it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Thread
from typing import ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import Input

from flame.core.errors import FlameError
from flame.core.loading.inputs import Inputs
from flame.tui.dialogs.file_dialog import FileDialog
from flame.tui.dialogs.write_files import ExportFormat, OutputFile, output_file
from flame.tui.toolkit.background import hand_in
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.text import cut_start, wrap

_SCOPE_LINES = 2
_WRITING = "writing …"


class WritingDialog(FileDialog[str | None]):
    """Write a file and return a note of it, or None if the user left before that.

    ``formats`` and ``scopes`` are what there is to choose from. What is there already is replaced
    only when asked for a second time; ``inputs`` never.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,e", "leave", "leave without writing anything", key_display="esc q"),
    ]

    class Written(Message):
        """A note of the file that is there now, or why it is not."""

        def __init__(self, outcome: str | Exception) -> None:
            super().__init__()
            self.outcome = outcome

    def __init__(
        self, inputs: Inputs, formats: Sequence[ExportFormat], scopes: Sequence[str]
    ) -> None:
        super().__init__(format=[format.title for format in formats], scope=scopes)
        self._inputs = inputs
        self._formats = formats
        self._suffix = formats[0].suffix
        self._agreed = ""
        self._writing = False

    def on_mount(self) -> None:
        self.entry.value = self._usual_name

    # What each dialog says for itself

    @property
    def has_scope(self) -> bool:
        """Whether the chosen format leaves anything to choose of the scope."""
        raise NotImplementedError

    def scope_about(self) -> str:
        """Say what will be written, in words."""
        raise NotImplementedError

    def begin(self, target: OutputFile) -> None:
        """Write ``target``, by `start`."""
        raise NotImplementedError

    @property
    def format(self) -> ExportFormat:
        """The format that is chosen."""
        return self._formats[self.choices["format"].chosen]

    @property
    def everything(self) -> bool:
        """Whether the second of the scopes is chosen."""
        return self.choices["scope"].chosen == 1

    @property
    def _usual_name(self) -> str:
        return self._inputs.stem + self.format.suffix

    # What is shown

    def head(self, width: int) -> list[Line]:
        return [[Piece("Export", "strong")], []]

    def foot(self, width: int) -> list[Line]:
        scope = wrap(self.scope_about(), width, _SCOPE_LINES)
        about = [self.format.about, *scope, *[""] * (_SCOPE_LINES - len(scope))]
        return [[], *([Piece(cut_start(text, width), "dim")] for text in about)]

    def hint(self) -> str:
        if self._writing:
            return _WRITING
        return "enter write · ← → choose · ↑ ↓ field · esc leave"

    # Choosing

    def turned(self) -> None:
        """Give the file's name the end of the format, if it had that of the one before."""
        before, self._suffix = self._suffix, self.format.suffix
        self.choices["scope"].disabled = not self.has_scope
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
        self.begin(target)

    def start(self, write: Callable[[], str]) -> None:
        """Run ``write`` beside the event loop."""

        def work() -> None:
            outcome: str | Exception
            try:
                outcome = write()
            except Exception as error:
                outcome = error
            hand_in(self.Written(outcome), self.post_message)

        Thread(target=work, daemon=True).start()

    @on(Written)
    def _written(self, message: Written) -> None:
        if isinstance(message.outcome, str):
            self.dismiss(message.outcome)
            return
        if not isinstance(message.outcome, FlameError):
            raise message.outcome
        self.query_one("#box").display = True
        self._writing, self.note = False, str(message.outcome)
        self.draw()
