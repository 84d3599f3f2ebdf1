"""A quick dataclass is told from one of the standard library by nothing but how fast it is made."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from functools import cached_property
from typing import Any, ClassVar

import pytest

from flame.core import quick_dataclass


class Plain:
    """Have nothing but fields."""

    first: int
    second: str = "b"
    kind: ClassVar[str] = "plain"


class Single:
    """Have one field."""

    only: int


class Empty:
    """Have no field."""


class Full:
    """Have all that fields may have."""

    first: int
    hidden: int = field(default=2, repr=False)
    ignored: int = field(default=3, compare=False)
    made: list[int] = field(default_factory=list, compare=False)

    def __post_init__(self) -> None:
        if self.first < 0:
            raise ValueError("negative")

    @cached_property
    def double(self) -> int:
        return 2 * self.first


class Told:
    """Describe itself."""

    first: int

    def __repr__(self) -> str:
        return "told"


SHAPES = (Plain, Single, Empty, Full, Told)
VALUES: dict[type, list[tuple[Any, ...]]] = {
    Plain: [(1,), (1, "b"), (1, "c"), (2,)],
    Empty: [(), ()],
}
USUAL: list[tuple[Any, ...]] = [(1,), (1,), (2,)]


def both(shape: type, eq: bool = True) -> tuple[type, type]:
    """The class as made here, and as the standard library makes it."""
    made: list[type] = []
    for make in (quick_dataclass.dataclass, dataclasses.dataclass):
        copied = type(shape.__name__, (), dict(shape.__dict__))
        made.append(make(frozen=True, eq=eq)(copied))
    return made[0], made[1]


def outcome(action: Callable[[], object]) -> object:
    """What an action returns, or the error that it raises."""
    try:
        return action()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("eq", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_instances_are_described_compared_and_hashed_alike(shape: type, eq: bool) -> None:
    quick, usual = both(shape, eq)
    values = VALUES.get(shape, USUAL)
    ours, theirs = ([made(*each) for each in values] for made in (quick, usual))
    assert list(map(repr, ours)) == list(map(repr, theirs))
    for one, other in zip(ours, theirs, strict=True):
        assert [one == each for each in ours] == [other == each for each in theirs]
        assert not eq or hash(one) == hash(other)
        assert one != other


@pytest.mark.parametrize("shape", SHAPES)
def test_fields_and_signature_are_alike(shape: type) -> None:
    quick, usual = both(shape)
    ours, theirs = (inspect.signature(each).parameters for each in (quick, usual))
    assert [(p.name, p.annotation) for p in ours.values()] == [
        (p.name, p.annotation) for p in theirs.values()
    ]
    assert [repr(each) for each in dataclasses.fields(quick)] == [
        repr(each) for each in dataclasses.fields(usual)
    ]
    assert quick.__match_args__ == usual.__match_args__  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "action",
    [
        lambda made: setattr(made(1), "first", 3),
        lambda made: delattr(made(1), "first"),
        lambda made: made(),
        lambda made: made(1, nothing=2),
        lambda made: made(-1),
        lambda made: repr(dataclasses.replace(made(1, 5), first=4)),
        lambda made: dataclasses.asdict(made(1)),
        lambda made: made(7).double,
        lambda made: repr(copy.deepcopy(made(1, made=[1, 2]))),
        lambda made: made(1).made is made(1).made,
        lambda made: made(1) == 1,
        lambda made: made.kind if hasattr(made, "kind") else None,
    ],
)
def test_what_is_done_with_them_ends_alike(action: Callable[[Any], object]) -> None:
    quick, usual = both(Full)
    assert outcome(lambda: action(quick)) == outcome(lambda: action(usual))


def test_what_a_frozen_instance_refuses_is_an_error_of_the_library() -> None:
    quick, _ = both(Plain)
    with pytest.raises(FrozenInstanceError, match="'first'"):
        quick(1).first = 2


@quick_dataclass.dataclass(frozen=True)
class Kept:
    """Be pickled."""

    first: int
    rest: tuple[int, ...] = ()


def test_instances_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(Kept(1, (2, 3)))) == Kept(1, (2, 3))


def test_an_instance_that_holds_itself_is_described() -> None:
    quick, usual = both(Single)
    texts = []
    for made in (quick, usual):
        around: list[object] = []
        around.append(made(around))
        texts.append(repr(around[0]))
    assert texts[0] == texts[1]
