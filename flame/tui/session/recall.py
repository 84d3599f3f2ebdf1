"""Open traces as their user last chose to look at others, and see what is to be remembered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from flame.core.frame import EFFICIENCY, IMBALANCE
from flame.core.model.profile import Profile
from flame.core.names.framework import joined
from flame.core.projection.chosen_metric import chosen_metric
from flame.core.projection.filters import HideFramework
from flame.core.projection.levels import MADE_LEVELS, SAMPLE_LEVELS, STACK_LEVELS, recorded_levels
from flame.core.projection.named_levels import explain_missing_levels, name_of
from flame.core.projection.selection import Selection
from flame.options.config import DEFAULTS
from flame.options.preferences import LEVELS, Memory, Preferences, ShownLevels
from flame.tui.session.session import Projection

_CODE = frozenset(("python", "native", "stack"))
_CONTEXT = frozenset((*STACK_LEVELS, *MADE_LEVELS, *SAMPLE_LEVELS, "shapes"))
"""Levels that say more than what ran where."""

SETTINGS = {
    "theme": "the theme",
    "details": "the details",
    "kernel_names": "names of kernels",
    "colours": "colours",
    "hide_framework": "frames of frameworks",
    "fold_numbers": "numbers",
    LEVELS: "levels",
}
"""What settings that are remembered are called on the screen."""


def kind_of(profile: Profile) -> str:
    """Tell traces apart that are not looked at in the same levels: by format, samples, number."""
    sampled = " with samples" if profile.sampling is not None else ""
    return f"{profile.meta.format}{sampled}{', several' if len(profile.sources) > 1 else ''}"


def shown_levels_of(selection: Selection) -> ShownLevels:
    """Return what `ShownLevels` remembers of ``selection``."""
    return ShownLevels(selection.levels, selection.naming.fold, selection.forward)


def with_preferences(
    recalled: Preferences,
    framework: Sequence[str],
    selection: Selection,
    profile: Profile | None = None,
) -> Selection:
    """Show what is ``recalled`` in place of what ``selection`` says of the same.

    Levels are those for traces like ``profile``, if this one has frames of what they are about.
    ``framework`` are the expressions of frames that are hidden as those of frameworks.
    """
    numbers = recalled.fold_numbers
    naming = replace(
        selection.naming,
        kernel_names=recalled.kernel_names or selection.naming.kernel_names,
        numbers=selection.naming.numbers if numbers is None else numbers,
    )
    colours = recalled.colours or selection.colours
    selection = replace(selection, naming=naming, colours=colours)
    if profile is not None:
        selection = _arranged(selection, recalled.levels.get(kind_of(profile)), profile)
    hides = bool(recalled.hide_framework and framework and _has_code(profile, selection))
    return _hiding(selection, framework) if hides else selection


def _arranged(selection: Selection, known: ShownLevels | None, profile: Profile) -> Selection:
    if known is None or not _fits(selection, known, profile):
        return selection
    naming = replace(selection.naming, fold=known.fold)
    return replace(selection, levels=known.levels, naming=naming, forward=known.forward)


def _fits(selection: Selection, known: ShownLevels, profile: Profile) -> bool:
    """Whether ``profile`` has something in each respect that matters of the levels ``known``."""
    metric = chosen_metric(profile, selection.metric)
    if known.levels is None or not _is_usual_table(selection, profile):
        return known.levels is None
    if explain_missing_levels(profile, metric, known.levels):
        return False
    context = _CONTEXT.intersection(known.levels)
    return not context or not context.isdisjoint(recorded_levels(profile, metric))


def _is_usual_table(selection: Selection, profile: Profile) -> bool:
    """Whether the metric of ``selection`` measures what the usual one does: other levels fit."""
    usual = chosen_metric(profile, None)
    return chosen_metric(profile, selection.metric).table == usual.table


def _has_code(profile: Profile | None, selection: Selection) -> bool:
    if profile is None:
        return True
    metric = chosen_metric(profile, selection.metric)
    return not _CODE.isdisjoint(recorded_levels(profile, metric))


def _hiding(selection: Selection, framework: Sequence[str]) -> Selection:
    if _hides_framework(selection):
        return selection
    return replace(selection, where=(*selection.where, HideFramework(joined(framework))))


def _hides_framework(selection: Selection) -> bool:
    return any(isinstance(one, HideFramework) for one in selection.where)


def misfit(recalled: Preferences, profile: Profile, shown: Selection) -> str:
    """Say that levels which are remembered for such traces are not ``shown``; empty if they are."""
    known = recalled.levels.get(kind_of(profile))
    if known is None or shown_levels_of(shown) == known or not _is_usual_table(shown, profile):
        return ""
    name = name_of(known.levels, known.fold) or ", ".join(known.levels or ())
    return f"the usual levels: those of last time ({name}) do not fit this trace"


def usual_again(
    forgotten: Preferences, selection: Selection, kernel_names: str, kind: str
) -> Selection:
    """Return ``selection`` with the usual in place of what has been ``forgotten``.

    That is ``kernel_names``, and the usual levels of traces of ``kind``.
    """
    naming = selection.naming
    if forgotten.kernel_names is not None:
        naming = replace(naming, kernel_names=kernel_names)
    if forgotten.fold_numbers is not None:
        naming = replace(naming, numbers=True)
    if forgotten.colours is not None:
        selection = replace(selection, colours="level")
    if forgotten.hide_framework is not None:
        where = tuple(one for one in selection.where if not isinstance(one, HideFramework))
        selection = replace(selection, where=where)
    if kind in forgotten.levels:
        naming = replace(naming, fold=False)
        selection = replace(selection, levels=None, forward=True)
    return replace(selection, naming=naming)


_USUAL = {
    "kernel_names": DEFAULTS.kernel_names,
    "colours": Selection.colours,
    "hide_framework": False,
    "fold_numbers": True,
}
"""Settings where nothing is remembered, as the app has them."""


class Remembering:
    """Have ``memory`` remember what the user changes from one projection to the next.

    Levels are remembered for traces of ``kind``; without one not at all.
    """

    def __init__(self, memory: Memory, shown: Projection, kind: str = "") -> None:
        self._memory = memory
        self._kind = kind
        self._before = shown.selection, shown.metric.table

    def follow(self, shown: Projection) -> None:
        """Remember what has changed up to ``shown``; what is as usual needs no memory."""
        (before, table), after = self._before, shown.selection
        self._before = after, shown.metric.table
        old = _settings(before)
        changes = {name: now for name, now in _settings(after).items() if now != old[name]}
        if {IMBALANCE, EFFICIENCY} & {before.colours, after.colours}:
            changes.pop("colours", None)  # few traces have these
        self._memory.remember(
            **{name: None if now == _USUAL[name] else now for name, now in changes.items()}
        )
        is_usual = table == shown.metric.table and _is_usual_table(after, shown.profile)
        levels = shown_levels_of(after)
        if self._kind and is_usual and levels != shown_levels_of(before) and not _by_rank(shown):
            self._memory.remember_levels(self._kind, levels)


def _by_rank(shown: Projection) -> bool:
    """Whether each rank of a summary has frames of its own: of thousands that takes long."""
    return shown.profile.ranks is not None and "rank" in shown.view.tree.levels


def _settings(selection: Selection) -> dict[str, object]:
    """What of ``selection`` is remembered for all traces, as `Preferences` call it."""
    return {
        "kernel_names": selection.naming.kernel_names,
        "colours": selection.colours,
        "hide_framework": _hides_framework(selection),
        "fold_numbers": selection.naming.numbers,
    }
