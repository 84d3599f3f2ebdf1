"""Why filters leave nothing, where they ask for what the trace does not have."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from flame.core.model.profile import Profile
from flame.core.projection.filters import Filter, Ranks, Step

_SOME = 4


def absences(profile: Profile, where: tuple[Filter, ...]) -> Iterator[str]:
    """What of ``where`` is not there, and what is instead, in words that go on after a colon."""
    for one in where:
        if isinstance(one, Step) and not _has_step(profile, one):
            yield _steps_there(profile)
        elif isinstance(one, Ranks) and not one.known(profile):
            yield _ranks_there(profile, one)


def _has_step(profile: Profile, one: Step) -> bool:
    numbers = _numbers(profile)
    return any(one.first <= number <= one.last for number in numbers)


def _numbers(profile: Profile) -> list[int]:
    return [] if profile.steps is None else np.unique(profile.steps.number).tolist()


def _steps_there(profile: Profile) -> str:
    numbers = _numbers(profile)
    if not numbers:
        return "it has no steps, which profiler.step() makes"
    return (
        f"its steps are {numbers[0]} to {numbers[-1]}"
        if numbers[1:]
        else f"its only step is {numbers[0]}"
    )


def _ranks_there(profile: Profile, one: Ranks) -> str:
    if len(profile.sources) < 2:
        return "there is only one trace, and no ranks"
    names = [source.label for source in profile.sources]
    more = f" and {len(names) - _SOME} more" if len(names) > _SOME else ""
    return f"no trace is called {', '.join(one.names)}, but {', '.join(names[:_SOME])}{more}"
