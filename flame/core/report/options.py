"""Understand the options of a report that say what the iterations are."""

from __future__ import annotations

from dataclasses import replace

from flame.core.errors import UsageError
from flame.core.lazy_regex import lazy_regex
from flame.core.model.iterations import chosen_ranges
from flame.core.model.profile import Profile
from flame.core.names.tensors import bytes_of
from flame.core.projection.filters import Steps
from flame.core.projection.selection import Selection
from flame.core.regex import compile_expression

_SPAN = lazy_regex(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")


def check_dtype(name: str) -> str:
    """Return the name of a type of tensors; UsageError where nothing is called so."""
    if bytes_of(name) is None:
        raise UsageError(f"--dtype {name}: use a type of PyTorch, such as bf16, half or float32")
    return name


def with_iterations(selection: Selection, span: str | None) -> Selection:
    """Restrict ``selection`` to the iterations ``A-B`` or ``A``; UsageError for another text."""
    if span is None:
        return selection
    parts = _SPAN.fullmatch(span)
    first, last = (int(parts[1]), int(parts[2] or parts[1])) if parts else (1, 0)
    if last < first:
        raise UsageError(f"--iterations '{span}': use A-B, such as 3-5, or a number")
    return replace(selection, where=(*selection.where, Steps(((first, last),))))


def without_steps(selection: Selection) -> Selection:
    """Choose no iterations: the app knows no ``--iteration``, and its steps are others."""
    kept = tuple(one for one in selection.where if not isinstance(one, Steps))
    return replace(selection, where=kept)


def with_iteration(profile: Profile, pattern: str) -> Profile:
    """Make the ranges that ``pattern`` matches the iterations of ``profile``.

    Raises UsageError where it is no regular expression, or no range matches.
    """
    try:
        found = with_usual_iteration(profile, pattern)
    except UsageError as error:
        raise UsageError(f"--iteration {pattern!r}: {error}") from None
    if found is profile:
        raise UsageError(f"--iteration {pattern!r}: no range of the trace matches")
    return found


def with_given_iteration(profile: Profile, pattern: str | None) -> Profile:
    """Do that where a ``pattern`` is given."""
    return profile if pattern is None else with_iteration(profile, pattern)


def with_usual_iteration(profile: Profile, pattern: str) -> Profile:
    """Do the same where any range matches; else it is the same profile."""
    expression = compile_expression(pattern)
    found = chosen_ranges(profile.frames, profile.threads, expression, profile.spans_finder)
    return profile.with_iterations(found) if len(found) else profile
