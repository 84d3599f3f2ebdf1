"""Ask for the format, scope and file of an export, and write it beside the event loop."""

from __future__ import annotations

from flame.core.loading.inputs import Inputs
from flame.core.model.profile import Profile
from flame.tui.dialogs.write_files import FORMATS, ExportedStacks, OutputFile, write_picture
from flame.tui.dialogs.writing import WritingDialog
from flame.tui.session.session import Projection
from flame.tui.toolkit.text import cut, printable

SCOPES = ("what is shown", "everything")

_NAME = 32
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


class ExportDialog(WritingDialog):
    """Write stacks, or a picture of the screen."""

    def __init__(self, inputs: Inputs, profile: Profile, shown: Projection) -> None:
        super().__init__(inputs, FORMATS, SCOPES)
        self._profile = profile
        self._shown = shown

    @property
    def has_scope(self) -> bool:
        return self.format.key != "screen"

    def scope_about(self) -> str:
        if not self.has_scope:
            return ""
        return _ALL_ABOUT if self.everything else shown_about(self._shown)

    def terms(self) -> list[tuple[str, str]]:
        formats = [(format.title, format.about) for format in FORMATS]
        return [*formats, (SCOPES[0], _SHOWN_ABOUT), (SCOPES[1], _ALL_ABOUT)]

    def begin(self, target: OutputFile) -> None:
        if not self.has_scope:
            self.query_one("#box").display = False
            self.call_after_refresh(self._picture, target)
        else:
            format = self.format.key
            self.start(lambda: self._stacks.write(format, target.path, replace=target.there))

    def _picture(self, target: OutputFile) -> None:
        """Save the screen, from which this dialog has been taken."""
        svg = self.app.export_screenshot(title=printable(self._inputs.title))
        self.start(lambda: write_picture(svg, target.path, replace=target.there))

    @property
    def _stacks(self) -> ExportedStacks:
        view = self._shown.view
        part = None if self.everything else view.tree.restrict_to(view.viewport.zoom.node)
        return ExportedStacks(self._profile, self._inputs.title, part)
