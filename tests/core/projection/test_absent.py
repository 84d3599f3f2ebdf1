"""Why nothing is left: what a filter asks for is not in the trace."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flame.core.errors import NoMatchError
from flame.core.loading.many import load
from flame.core.model.meta import Source
from flame.core.model.profile import Profile
from flame.core.projection.filters import Filter, Kernel, Ranks, Steps
from tests.support.paths import SAMPLES
from tests.support.profiles.project_tree import project_tree

SAMPLE = SAMPLES / "torch_small.pt.trace.json.gz"
NOTHING = "nothing in the trace matches the selection"


@pytest.fixture(scope="module")
def profile() -> Profile:
    """With the steps 3 to 7."""
    return load(SAMPLE)


def reason(profile: Profile, one: Filter) -> str:
    with pytest.raises(NoMatchError) as raised:
        project_tree(profile, where=(one,))
    return str(raised.value).removeprefix(NOTHING)


def test_steps_that_are_not_there(profile: Profile) -> None:
    assert reason(profile, Steps(((9, 12),))) == ": its steps are 3 to 7"
    assert reason(replace(profile, steps=None), Steps(((3, 3),))).startswith(": it has no steps")


def test_ranks_that_are_not_there(profile: Profile) -> None:
    assert reason(profile, Ranks(("1",))) == ": there is only one trace, and no ranks"
    several = tuple(Source(f"rank {number}", profile.meta) for number in range(6))
    found = reason(replace(profile, sources=several), Ranks(("9", "x*")))
    assert found == ": no trace is called 9, x*, but rank 0, rank 1, rank 2, rank 3 and 2 more"


def test_other_filters_give_no_reason(profile: Profile) -> None:
    assert reason(profile, Kernel("no such kernel")) == ""
