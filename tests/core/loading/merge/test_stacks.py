"""Several files of stacks as one: which add up, and which cannot be shown together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flame.core.errors import InputError
from flame.core.loading.merge.profiles import merge_profiles
from flame.core.model.profile import Profile
from flame.core.model.raw import Measure
from tests.core.attribution.test_resolved import ROWS, resolved
from tests.core.loading.merge.short_traces import trace
from tests.support.profiles.project_tree import project_tree
from tests.support.profiles.recorded import i8, leaves


def test_stacks_of_several_files_add_up() -> None:
    whole = merge_profiles([resolved(ROWS), resolved(ROWS, threads=2)], ["a", "b"])
    assert leaves(project_tree(whole, "rank")) == {("a",): 15, ("b",): 15}
    assert leaves(project_tree(whole, "rank", metric="bytes")) == {("a",): 30, ("b",): 30}
    assert project_tree(whole).levels == ("rank", "thread", "stack")


def test_files_that_measure_different_things_are_told_apart() -> None:
    samples, size = _measured("count"), _measured("bytes", key="bytes")
    size = replace(size, own_metrics=(replace(size.metrics[0], title="bytes"),))
    (said,) = merge_profiles([samples, size, samples], ["a", "b", "c"]).warnings
    assert said.startswith("these files measure different things (a time; b bytes): ")
    assert merge_profiles([samples, samples], ["a", "b"]).warnings == ()


def _measured(unit: str, key: str = "samples", value: int = 5) -> Profile:
    profile = resolved([(("f",), value)])
    metric = replace(profile.metrics[0], key=key, unit=unit)
    measures = {key: Measure(key, key, unit, i8(value)).values}
    table = replace(profile.activities, measures=measures)
    values = lambda rows: rows.measures[key]  # noqa: E731
    return replace(profile, activities=table, own_metrics=(replace(metric, values=values),))


def test_plain_numbers_are_counted_in_the_smallest_of_their_parts() -> None:
    whole = merge_profiles(
        [_measured("count"), _measured("1e-2"), _measured("1e-3")], ["a", "b", "c"]
    )
    assert whole.metrics[0].unit == "1e-3"
    assert leaves(project_tree(whole, "rank")) == {("a",): 5_000, ("b",): 50, ("c",): 5}


def test_a_metric_that_a_file_does_not_have_is_zero_there() -> None:
    whole = merge_profiles([_measured("ns", "time"), _measured("bytes", "alloc")], ["a", "b"])
    assert leaves(project_tree(whole, "rank", metric="time")) == {("a",): 5}
    assert leaves(project_tree(whole, "rank", metric="alloc")) == {("b",): 5}


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (_measured("ns"), _measured("bytes"), "time is ns in a and bytes in b: open them"),
        (_measured("ns"), trace(), "b is a trace, others are only stacks"),
        (trace(), _measured("ns"), "a is a trace, others are only stacks"),
        (_measured("count", value=1 << 60), _measured("1e-1"), "more than 64 bits hold"),
    ],
)
def test_what_cannot_be_shown_together_is_said_in_one_line(
    one: Profile, other: Profile, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        merge_profiles([one, other], ["a", "b"])
