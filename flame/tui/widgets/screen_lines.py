"""Show the single lines above the views, each a widget that takes what it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual import on

from flame.core.model.profile import Profile
from flame.core.model.tree import Order
from flame.core.projection.filters import Filter
from flame.tui.session.session import Projection
from flame.tui.session.tree_view import TreeView
from flame.tui.shell.actions import Action
from flame.tui.toolkit.background import Done, in_background
from flame.tui.toolkit.lines import Line, Lines, Piece, line_width, palette_of
from flame.tui.widgets.chips import chips, fold_chip, recalled_chip
from flame.tui.widgets.header import HeaderNotes, breadcrumb, header, tabs


class HeaderLine(Lines):
    """Show the trace and how it is projected; ``usual_order`` is that of siblings at first."""

    def __init__(self, usual_order: Order) -> None:
        super().__init__(self._header, id="header")
        self._usual_order = usual_order
        self._trace: tuple[str, Profile] | None = None
        self._projection: Projection | None = None
        self._findings: Piece | None = None

    def show_findings(self, text: str, high: bool = False) -> None:
        """Say how many findings there are; nothing where ``text`` is empty."""
        click = Action.FINDINGS.click()
        piece = Piece(text, "warning" if high else "key", click) if text else None
        if piece != self._findings:
            self._findings = piece
            self.update()

    def show(self, title: str, profile: Profile, projection: Projection) -> None:
        """Draw ``profile``, called ``title``, and how it is projected."""
        is_new = projection is not self._projection and projection.headline_now() is None
        if is_new and projection.tells_work:
            in_background(projection.headline, 0, self.post_message)
        self._trace, self._projection = (title, profile), projection
        self.update()

    @on(Done)
    def _headline_known(self, message: Done) -> None:
        message.result()
        self.update()

    def _header(self, width: int, height: int) -> list[Line]:
        shown = self._projection
        if self._trace is None or shown is None:
            return []
        tree, palette = shown.view.tree, palette_of(self)
        order = self._usual_order
        about = HeaderNotes(self._findings, shown.headline_now() or "")
        return [header(*self._trace, shown.selection, tree, palette, width, order, about)]


class ViewTabs(Lines):
    """Show the views to choose from; ``titles`` has them by name."""

    def __init__(self, titles: Mapping[str, str]) -> None:
        super().__init__(self._tabs, id="tabs")
        self._titles = dict(titles)
        self._current_name = ""

    def show(self, current: str) -> None:
        """Draw the view called ``current`` as the one that is shown."""
        self._current_name = current
        self.update()

    def _tabs(self, width: int, height: int) -> list[Line]:
        return [tabs(self._titles, self._current_name, width)]


class Breadcrumb(Lines):
    """Show the path from the root to the selected frame."""

    def __init__(self) -> None:
        super().__init__(self._breadcrumb, id="crumbs")
        self._view: TreeView | None = None

    def show(self, view: TreeView) -> None:
        """Draw the path to the selected frame of ``view``."""
        self._view = view
        self.update()

    def _breadcrumb(self, width: int, height: int) -> list[Line]:
        return [breadcrumb(self._view, width)] if self._view else []


class FoldChip(Lines):
    """Say that numbers in names are folded, with a cross to take that back."""

    def __init__(self) -> None:
        super().__init__(lambda width, height: [fold_chip()], id="folds")
        self.styles.width = line_width(fold_chip())

    def show(self, folds: bool) -> None:
        """Be there if anything ``folds``."""
        self.display = folds


class RecalledChip(Lines):
    """Say that the trace is shown as others were at last, with a cross to forget that."""

    def __init__(self) -> None:
        super().__init__(lambda width, height: [recalled_chip()], id="recalled")
        self.styles.width = line_width(recalled_chip())


class FilterChips(Lines):
    """Show the filters, each with a cross to take it away."""

    def __init__(self) -> None:
        super().__init__(self._chips, id="chips")
        self._filters: Sequence[Filter] = ()
        self._profile: Profile | None = None
        self._moment = ""

    def show(self, filters: Sequence[Filter], profile: Profile, moment: str = "") -> None:
        """Draw ``filters`` in the words of ``profile``; ``moment`` of memory is shown."""
        self._filters, self._profile, self._moment = filters, profile, moment
        self.display = bool(filters)
        self.update()

    def _chips(self, width: int, height: int) -> list[Line]:
        if self._profile is None:
            return []
        return [chips(self._filters, self._profile, width, self._moment)]
