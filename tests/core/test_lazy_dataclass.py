"""A lazy dataclass does what the standard library's does, and compiles nothing until it is used."""

from __future__ import annotations

import builtins
import dataclasses
import pickle
import re
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, fields, replace
from itertools import product
from typing import Any

import pytest

from flame.core import lazy_dataclass

Decorator = Callable[..., Any]
LAZY: Decorator = lazy_dataclass.dataclass
STANDARD: Decorator = dataclasses.dataclass

Spec = dict[str, Any]
SPECS: tuple[Spec, ...] = (
    {},
    {"default": 5},
    {"default_factory": list},
    {"default": 5, "init": False, "repr": False},
    {"default_factory": list, "init": False},
    {"kw_only": True, "compare": False},
    {"default_factory": list, "kw_only": True, "repr": False},
)
OPTIONS = [
    dict(zip(("frozen", "eq"), each, strict=True)) for each in product((False, True), (False, True))
]
CALLS: tuple[tuple[tuple[int, ...], dict[str, int]], ...] = (
    ((), {}),
    ((1,), {}),
    ((1, 2), {}),
    ((1, 2, 3), {}),
    ((1,), {"second": 2}),
    ((), {"first": 1, "second": 2}),
    ((1,), {"other": 2}),
)


def made_by(decorator: Decorator, specs: tuple[Spec, ...], options: dict[str, bool]) -> Any:
    """A class of one field for each of ``specs``, made by ``decorator``."""
    named = dict(zip(("first", "second"), specs, strict=False))
    body = {name: field(**spec) for name, spec in named.items()}
    body |= {"__annotations__": dict.fromkeys(named, "object"), "__doc__": "Doc."}
    return decorator(**options)(type("Made", (), body | {"__module__": __name__}))


def tried(action: Callable[[], object]) -> object:
    """What ``action`` returns, or the error that it raises."""
    try:
        return action()
    except (AttributeError, TypeError, ValueError) as error:
        return type(error), str(error)


def told(cls: Any, args: tuple[int, ...], named: dict[str, int]) -> list[object]:
    """What one can see of instances of ``cls``, called with these arguments."""
    try:
        one, same, other = (cls(*args, **named) for _ in range(3))
    except TypeError as error:
        return [str(error)]
    vars(other)["first"] = 99
    seen: list[object] = [repr(one), vars(one), one == same, one == other, one == args]
    seen += [tried(lambda: hash(one) == hash(same)), tried(lambda: repr(replace(one, first=7)))]
    seen += [tried(lambda: setattr(same, "first", 3)), tried(lambda: delattr(same, "first"))]
    return [*seen, vars(same), cls.__match_args__, cls.__doc__, [each.name for each in fields(cls)]]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_it_does_what_that_of_the_standard_library_does(options: dict[str, bool]) -> None:
    for specs in [*product(SPECS), *product(SPECS, SPECS)]:
        try:
            standard = made_by(STANDARD, specs, options)
        except TypeError:  # a field without default below one with
            continue
        lazy = made_by(LAZY, specs, options)
        for args, named in CALLS:
            assert repr(told(lazy, args, named)) == repr(told(standard, args, named)), specs


@lazy_dataclass.dataclass(frozen=True)
class Point:
    """A point."""

    x: int
    y: list[object] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"at {self.x}"


@lazy_dataclass.dataclass(frozen=True)
class Place(Point):
    """A point with a name, and one value that is worked out."""

    name: str = ""

    def __post_init__(self) -> None:
        vars(self)["half"] = self.x / 2


class Own(Place):
    pass


@lazy_dataclass.dataclass(frozen=True)
class Number:
    """A single field."""

    value: float


def test_a_class_keeps_its_own_methods_and_has_the_fields_of_its_base() -> None:
    place = Place(4, name="here")
    assert repr(Point(3)) == "at 3"
    assert repr(place) == "Place(x=4, y=[], name='here')"
    assert vars(place)["half"] == vars(Own(4))["half"] == 2
    assert place == Place(4, [], "here") != Point(4)
    assert Own(4) != Place(4)
    assert Place(4) != Own(4)


def test_instances_are_pickled_and_stay_frozen() -> None:
    read = pickle.loads(pickle.dumps(Place(4, [1], "here")))
    assert read == Place(4, [1], "here")
    with pytest.raises(FrozenInstanceError, match=r"^cannot assign to field 'x'$"):
        read.x = 5


def test_values_are_compared_as_those_of_tuples_on_every_python() -> None:
    """The standard library's, from 3.13 on, is unequal to its copy where a value is to itself."""
    value = float("nan")
    assert Number(value) == Number(value) != Number(-value)
    assert hash(Number(value)) == hash(Number(value))


def test_one_that_holds_itself_is_shown() -> None:
    place = Place(1)
    place.y.append(place)
    assert repr(place) == "Place(x=1, y=[...], name='')"


def test_it_is_compiled_when_it_is_first_called_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    exec_ = builtins.exec

    def exec_seen(text: str, *names: Any) -> None:
        # From 3.13 on the standard library compiles the methods it makes at once, be they none.
        compiled.extend(re.findall(r"def (?!__create_fn__)\w+", text))
        exec_(text, *names)

    monkeypatch.setattr(builtins, "exec", exec_seen)
    cls = made_by(LAZY, ({}, {"default": 1}), {"frozen": True, "eq": True})
    assert compiled == []
    assert [cls(first).second for first in (1, 2, 3)] == [1, 1, 1]
    assert compiled == ["def __init__"]
