"""Ask for filters: list every kind with what is set of it, and change one on its page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar, NamedTuple

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from flame.core.analysis.words.formats import NVTX, terms_of
from flame.core.errors import UsageError
from flame.core.model.profile import Profile
from flame.core.projection.filters import Filter, NvtxRange, Steps
from flame.core.units import format_percent, format_value
from flame.tui.dialogs.filter_fields import FIELDS, Field
from flame.tui.dialogs.list_fields import ListField, Option, weight_of
from flame.tui.dialogs.steps import StepsDialog, StepsField
from flame.tui.dialogs.text_fields import TextField
from flame.tui.session.query import SelectedName
from flame.tui.session.wording import whole_of
from flame.tui.toolkit.dialog import CURSOR, Dialog
from flame.tui.toolkit.dialog.row_list import CheckList, LazyLines, RowList
from flame.tui.toolkit.lines import Line, Piece, SomeLines
from flame.tui.toolkit.text import cut, fill, wrap
from flame.tui.widgets.chips import value_of

_TITLE = 18
_TIME = 18
_ABOUT = 3


class Slot(NamedTuple):
    """A row of the dialog: a filter, by its place, or room (None) for one more of its kind."""

    field: Field
    place: int | None


def slots(where: Sequence[Filter], offered: Sequence[Field] = FIELDS) -> list[Slot]:
    """List rows for all of ``where`` by kind, and for what may be added of those ``offered``."""
    rows: list[Slot] = []
    for field in FIELDS:
        places = [place for place, one in enumerate(where) if isinstance(one, field.type)]
        rows += [Slot(field, place) for place in places]
        if field in offered and (field.several or not places):
            rows.append(Slot(field, None))
    return rows


class FiltersDialog(Dialog[tuple[Filter, ...] | None]):
    """Return all filters that are to hold, or None if the user left without applying any change.

    ``name`` is that of the selected frame, with which new filters begin.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "enter", "edit the filter, or add one; on its page done"),
        Binding("space", "choose", "the same; on a page of marks this one on or off"),
        Binding("x,delete,backspace", "remove", "remove the filter (also backspace, delete)"),
        Binding("r", "remove_all", "remove all, on a page of marks all of them"),
        Binding("a", "apply", "apply the filters"),
        Binding(
            "escape,q,f", "leave", "go back: to the list, or without a change", key_display="esc q"
        ),
    ]

    def __init__(self, profile: Profile, where: tuple[Filter, ...], name: SelectedName) -> None:
        super().__init__()
        self._profile = profile
        self._offered = [field for field in FIELDS if field.applies(profile)]
        self._before = where
        self._where = list(where)
        self._frame_name = name
        self._slot: Slot | None = None
        self._options: list[Option] = []
        self.check_list = CheckList(lambda width, height: self._choices(width), id="marks")
        self.check_list.display = False

    def compose_rows(self) -> ComposeResult:
        yield from super().compose_rows()
        yield self.check_list

    @property
    def shown_list(self) -> RowList:
        return self.check_list if self.check_list.display else self.row_list

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keep keys of the list off the pages, on which a filter is edited."""
        if self._slot is None:
            return True
        if isinstance(self._slot.field, ListField):
            return action not in ("remove", "apply")
        return action in ("enter", "leave", "help", "clear")

    # What is shown

    def head(self, width: int) -> list[Line]:
        if self._slot is None:
            return [[Piece("Filters: all of them hold", "strong")], []]
        title: Line = [Piece("Filter: ", "dim"), Piece(self._title(self._slot), "strong")]
        if not isinstance(self._slot.field, TextField):
            return [title, []]
        about = wrap(self._slot.field.about(self._profile), width, _ABOUT)
        return [title, *([Piece(part, "dim")] for part in about)]

    def rows(self, width: int) -> list[Line]:
        shown = enumerate(self._slots)
        return [*(self._slot_row(n, slot, width) for n, slot in shown), self._apply_row()]

    def _choices(self, width: int) -> SomeLines:
        """The page of a filter that is chosen from a list."""
        options, marked = self._options, {*self.check_list.selected}
        return LazyLines(
            len(options), lambda row: self._option_row(row, options[row], marked, width)
        )

    def tail(self, width: int) -> list[Line]:
        return [[]] if self.entry.display else []

    def hint(self) -> str:
        if self._slot is None:
            return "a apply · enter edit · letter go to · x remove · r remove all"
        if isinstance(self._slot.field, ListField):
            return "enter done · space on/off · r none · esc back"
        return "enter done (empty: none) · ctrl+u clear · esc back"

    def terms(self) -> list[tuple[str, str]]:
        if self._slot is not None:
            return []
        return [
            ("+", "room for one more of the kind"),
            *(
                (field.title, field.about(self._profile))
                for field in self._offered
                if isinstance(field, TextField)
            ),
        ]

    def _slot_row(self, row: int, slot: Slot, width: int) -> Line:
        selected = row == self.cursor
        more = slot.place is None and slot.field.several
        title = fill(f"{self._title(slot)}{' +' if more else ''}", _TITLE)
        value = "·" if slot.place is None else value_of(self._where[slot.place], self._profile)
        tone = "dim" if slot.place is None else "strong"
        return [
            Piece(f"{CURSOR if selected else ' '} ", "strong"),
            Piece(title, "" if selected or slot.place is not None else "dim"),
            Piece(" " + cut(value, width - _TITLE - 3), tone),
        ]

    def _title(self, slot: Slot) -> str:
        """What filters of the kind are called for this trace."""
        if slot.field.type is NvtxRange and terms_of(self._profile) is not NVTX:
            return terms_of(self._profile).general
        return slot.field.title

    def _apply_row(self) -> Line:
        selected = self.cursor == len(self._slots)
        changed = tuple(self._where) != self._before
        number = len(self._where)
        what = f"{number} filter{'' if number == 1 else 's'}" if number else "no filter"
        return [
            Piece(f"{CURSOR if selected else ' '} ", "strong"),
            Piece(" apply ", "accent" if selected else "key"),
            Piece(f" {what}{'' if changed else ', as before'}", "dim"),
        ]

    def _option_row(self, row: int, option: Option, marked: set[int], width: int) -> Line:
        on, selected = option.value in marked, row == self.cursor
        return [
            Piece(f"{CURSOR if selected else ' '} ", "strong"),
            Piece("[x] " if on else "[ ] ", "strong" if on else "dim"),
            Piece(fill(cut(option.name, width - _TIME - 6), width - _TIME - 6)),
            Piece(self._share(option), "dim"),
        ]

    def _share(self, option: Option) -> str:
        """How much of what there is an option has, if there is anything."""
        if option.weight is None:
            return "not in this trace"
        whole = whole_of(self._profile)
        if not whole:
            return ""
        value = format_value(option.weight, weight_of(self._profile).unit)
        return f"{format_percent(option.weight, whole):>7} {value:>10}"

    # Choosing what to edit

    @property
    def _selected(self) -> Slot | None:
        """The selected filter, or room for one; None on the row that applies."""
        rows = self._slots
        return rows[self.cursor] if self.cursor < len(rows) else None

    @property
    def _slots(self) -> list[Slot]:
        return slots(self._where, self._offered)

    def on_key(self, event: events.Key) -> None:
        """Go to the next row that begins with the letter that is typed, unless it is a key."""
        letter = event.character or ""
        if (
            self._slot is None
            and letter.isalpha()
            and event.key not in self._bindings.key_to_bindings
        ):
            self._go_to_letter(letter.lower())

    def _go_to_letter(self, letter: str) -> None:
        begins = [self._title(slot).lower().startswith(letter) for slot in self._slots]
        after = [*range(self.cursor + 1, len(begins)), *range(min(self.cursor + 1, len(begins)))]
        self.cursor = next((row for row in after if begins[row]), self.cursor)
        self.draw()

    def clicked(self) -> None:
        self.action_choose()

    def action_choose(self) -> None:
        if self._slot is not None:
            self.check_list.flip()
        elif self._selected is None:
            self.action_apply()
        else:
            self._edit(self._selected)

    def action_enter(self) -> None:
        if self._slot is None:
            self.action_choose()
        elif isinstance(self._slot.field, ListField):
            marked = {*self.check_list.selected}
            values = tuple(one.value for one in self._options if one.value in marked)
            self._set(self._slot.field.make(values) if values else None)

    def action_remove(self) -> None:
        slot = self._selected
        if slot and slot.place is not None:
            del self._where[slot.place]
            self.draw()

    def action_remove_all(self) -> None:
        if self._slot is None:
            self._where.clear()
        else:
            self.check_list.deselect_all()
        self.draw()

    def action_apply(self) -> None:
        self.dismiss(tuple(self._where))

    def action_leave(self) -> None:
        if self._slot is None:
            self.dismiss(None)
        else:
            self._close()

    # Editing

    def _edit(self, slot: Slot) -> None:
        """Open the page of ``slot``, or the list of steps."""
        filter_ = None if slot.place is None else self._where[slot.place]
        if isinstance(slot.field, StepsField):
            chosen = filter_ if isinstance(filter_, Steps) else None
            self.draw()
            self.app.push_screen(StepsDialog(self._profile, chosen), partial(self._take, slot))
            return
        self._slot = slot
        self.row_list.display = False
        if isinstance(slot.field, ListField):
            self._begin_choosing(slot.field, filter_)
        elif isinstance(slot.field, TextField):
            self._begin_typing(slot.field, filter_)
        self.draw()

    def _begin_choosing(self, field: ListField, filter_: Filter | None) -> None:
        self._options = field.choices(self._profile, filter_)
        marked = field.chosen(filter_) if filter_ else ()
        self.check_list.offer((one.value for one in self._options), marked)
        self.check_list.display = True
        self.set_focus(self.check_list)

    def _begin_typing(self, field: TextField, filter_: Filter | None) -> None:
        entry = self.entry
        entry.value = field.spell(filter_) if filter_ else field.guess(self._frame_name)
        entry.display = True
        self.set_focus(entry)

    @on(Input.Changed)
    def _typed(self) -> None:
        field, self.note = self._slot and self._slot.field, ""
        try:
            filter_ = self._read()
            if filter_ and isinstance(field, TextField):
                self.note = field.doubt(self._profile, filter_)
        except UsageError as error:
            self.note = str(error)
        self.draw()

    def _read(self) -> Filter | None:
        """The filter that is typed, None if nothing is; UsageError where it is wrong."""
        field, text = self._slot and self._slot.field, self.entry.value
        return field.read(text) if isinstance(field, TextField) and text.strip() else None

    @on(Input.Submitted)
    def _entered(self) -> None:
        if self._slot is None:
            return  # left by a key that came right behind
        try:
            self._set(self._read())
        except UsageError as error:
            self.note = str(error)
            self.draw()

    def _take(self, slot: Slot, steps: Steps | None) -> None:
        """Put the ``steps`` that were chosen for ``slot`` in its place."""
        if steps is not None:
            self._slot = slot
            self._set(steps if steps.spans else None)

    def _set(self, one: Filter | None) -> None:
        """Put ``one`` in the place of what was edited, and go on to apply it."""
        assert self._slot is not None
        place = self._slot.place
        if place is not None:
            self._where[place : place + 1] = [one] if one else []
        elif one and one not in self._where:
            self._where.append(one)
        self._close()
        self.cursor = len(self._slots)
        self.draw()

    def _close(self) -> None:
        """Back to the list of filters."""
        self._slot, self.note = None, ""
        self.entry.display = self.check_list.display = False
        self.row_list.display = True
        self.set_focus(self.row_list)
        self.draw()
