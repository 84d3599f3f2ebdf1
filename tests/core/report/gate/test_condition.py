"""Conditions: what they mean, how they combine, and where a wrong one is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.errors import UsageError
from flame.core.report.gate.condition import (
    All,
    Any,
    Condition,
    Not,
    Term,
    Threshold,
    parse_condition,
    terms_of,
)
from flame.core.report.gate.decide import holds

limits = st.integers(0, 5)


def term(text: str) -> Term:
    found = parse_condition(text)
    assert isinstance(found, Term)
    return found


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("a > 3", Threshold(3, "count", False)),
        ("a > 0.5", Threshold(0.5, "count", False)),
        ("a>30%", Threshold(30, "percent", False)),
        ("a > 30 %", Threshold(30, "percent", False)),
        ("a > 45ms", Threshold(45_000_000, "ns", False)),
        ("a > 1.5 s", Threshold(1_500_000_000, "ns", False)),
        ("a > 7us", Threshold(7_000, "ns", False)),
        ("a > 7µs", Threshold(7_000, "ns", False)),
        ("a > 9ns", Threshold(9, "ns", False)),
        ("a > 2GB", Threshold(2_000_000_000, "bytes", False)),
        ("a > +5%", Threshold(5, "percent", True)),
        ("a > -3ms", Threshold(-3_000_000, "ns", True)),
    ],
)
def test_limits(text: str, limit: Threshold) -> None:
    assert term(text).limit == limit


def test_a_frame_has_a_pattern_and_a_part() -> None:
    found = term('frame("a|b (c)").total >= 1s')
    assert (found.name, found.text, found.operator) == ("frame.total", "a|b (c)", ">=")


def test_and_binds_closer_than_or_and_not_closest() -> None:
    found = parse_condition("not a > 1 and b > 2 or c > 3 and (d > 4 or e > 5)")
    a, b, c, d, e = terms_of(found)
    assert found == Any((All((Not(a), b)), All((c, Any((d, e))))))
    assert [one.name for one in (a, b, c, d, e)] == ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "at the end"),
        ("a", "<, <=, > or >= expected at the end"),
        ("a >", "a number, with %, ns"),
        ("a > 3 b > 4", "'and', 'or' or the end expected at 7: 'b'"),
        ("(a > 3", "')' expected at the end"),
        ("a > 3)", "expected at 6: ')'"),
        ("a = 3", "expected at 3: '='"),
        ("frame(x).total > 3", "a name in double quotes expected at 7"),
        ('frame("x") > 3', "a part, such as .total expected at 12"),
        ("a > 3 and", "a quantity expected at the end"),
        ("a > three", "expected at 5: 'three'"),
        ("not", "a quantity expected at the end"),
    ],
)
def test_where_a_condition_is_wrong(text: str, says: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_condition(text)
    assert says in str(error.value)
    assert str(error.value).startswith("--fail-on: ")


@pytest.mark.parametrize("text", ["(" * 100_000, "not " * 100_000, "(" * 60 + "a > 1" + ")" * 60])
def test_what_is_nested_far_too_deep_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="within each other"):
        parse_condition(text)


@given(st.text(max_size=40))
def test_any_text_is_a_condition_or_refused_in_a_line(text: str) -> None:
    try:
        parse_condition(text)
    except UsageError as error:
        assert "\n" not in str(error)


# What holds

terms = st.builds(Term, st.sampled_from("abc"), st.none(), st.just(">"), st.none(), st.just(0))
conditions = st.recursive(
    terms,
    lambda inner: (
        inner.map(Not)
        | st.lists(inner, min_size=2, max_size=3).map(tuple).map(All)
        | st.lists(inner, min_size=2, max_size=3).map(tuple).map(Any)
    ),
    max_leaves=8,
)
known = st.fixed_dictionaries({name: st.sampled_from([True, False, None]) for name in "abc"})


def plainly(condition: Condition, values: dict[str, bool]) -> bool:
    if isinstance(condition, Term):
        return values[condition.name]
    if isinstance(condition, Not):
        return not plainly(condition.inner, values)
    parts = [plainly(part, values) for part in condition.parts]
    return all(parts) if isinstance(condition, All) else any(parts)


@given(conditions, known)
def test_what_is_decided_does_not_depend_on_what_is_not_known(
    condition: Condition, values: dict[str, bool | None]
) -> None:
    found = holds(condition, {one: values[one.name] for one in terms_of(condition)})
    unknown = [name for name, value in values.items() if value is None]
    possible = set()
    for number in range(1 << len(unknown)):
        guess = {name: bool(number >> at & 1) for at, name in enumerate(unknown)}
        full = {name: value for name, value in values.items() if value is not None} | guess
        possible.add(plainly(condition, full))
    assert found is None or possible == {found}
    assert found is not None or unknown
