"""Understand the options of a report: phases in a file, and what the iterations are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from flame.core.errors import InputError, UsageError
from flame.core.lazy_regex import lazy_regex
from flame.core.model.iterations import chosen_ranges
from flame.core.model.profile import Profile
from flame.core.names.dtypes import bytes_of
from flame.core.projection.filters import Steps
from flame.core.projection.selection import Selection
from flame.core.regex import compile_expression
from flame.core.report.phase_patterns import Phase, parse_phases

_MOST_BYTES = 1 << 20
_SPAN = lazy_regex(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")


def read_phases(path: str) -> tuple[Phase, ...]:
    """Read the file of ``--phases``.

    Raises InputError where it cannot be read, UsageError where it is no file of phases.
    """
    try:
        with Path(path).open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise InputError(f"--phases {path}: {error.strerror or error}") from None
    if len(text) > _MOST_BYTES:
        raise UsageError(f"--phases {path}: larger than 1 MiB")
    try:
        return parse_phases(text.decode())
    except UnicodeDecodeError:
        raise UsageError(f"--phases {path}: not UTF-8") from None


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


def with_iteration(profile: Profile, pattern: str | None) -> Profile:
    """Make the ranges that ``pattern`` matches the iterations of ``profile``.

    Raises UsageError where it is no regular expression, or no range matches.
    """
    if pattern is None:
        return profile
    try:
        expression = compile_expression(pattern)
    except UsageError as error:
        raise UsageError(f"--iteration {pattern!r}: {error}") from None
    found = chosen_ranges(profile.frames, profile.threads, expression, profile.spans_finder)
    if not len(found):
        raise UsageError(f"--iteration {pattern!r}: no range of the trace matches")
    return profile.with_iterations(found)
