"""Make dataclasses whose ``__init__`` is compiled when it is first called.

The standard library compiles up to six methods for each class when its module is imported: 0.4 ms
a class on Python 3.11, which was a fifth of `flame view --print` for a hundred classes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

Method = Callable[..., Any]


def _dataclass(cls: type | None = None, /, *, frozen: bool = False, eq: bool = True) -> Any:
    """Make a dataclass of ``cls``, as ``dataclasses.dataclass`` does with the same options.

    ``fields``, ``replace`` and ``field`` of the standard library apply. What the class defines
    itself stays. There are no slots, no ``InitVar`` and no ``field(hash=…)``. Values are compared
    as those of tuples, as the standard library does up to 3.12: what is NaN in both is equal.
    """
    if cls is None:
        return lambda cls: _dataclass(cls, frozen=frozen, eq=eq)
    # A class without docstring would be given its signature, which takes as long as all the rest.
    cls.__doc__ = cls.__doc__ or cls.__name__
    own = set(vars(cls))
    dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    methods: dict[str, Any] = {"__init__": _lazy_init(cls, frozen), "__repr__": _repr}
    if eq:
        methods |= _comparison(cls, frozen)
    if frozen:
        methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
    for name, method in methods.items():
        if name not in own:
            setattr(cls, name, method)
    return cls


def _lazy_init(cls: type, frozen: bool) -> Method:
    def init(self: object, *args: object, **kwargs: object) -> None:
        made = _init(cls, frozen)
        cls.__init__ = made  # type: ignore[misc]
        made(self, *args, **kwargs)

    return init


def _init(cls: Any, frozen: bool) -> Method:
    """Compile the ``__init__`` of ``cls``: positional parameters first, then those by keyword."""
    given = [each for each in fields(cls) if each.init]
    parameters = [_parameter(each) for each in given if not each.kw_only]
    by_keyword = [_parameter(each) for each in given if each.kw_only]
    if by_keyword:
        parameters += ["*", *by_keyword]
    body = [*_assignments(cls, frozen), "pass"]
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    text = f"def __init__(self, {', '.join(parameters)}):\n  " + "\n  ".join(body)
    known: dict[str, Any] = {"_missing": MISSING, "_set": object.__setattr__}
    known |= {f"_default_{each.name}": each.default for each in fields(cls)}
    known |= {f"_make_{each.name}": each.default_factory for each in fields(cls)}
    exec(text, known)
    made: Method = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    return made


def _parameter(field: Field[Any]) -> str:
    if field.default is not MISSING:
        return f"{field.name}=_default_{field.name}"
    return field.name if field.default_factory is MISSING else f"{field.name}=_missing"


def _assignments(cls: Any, frozen: bool) -> Iterator[str]:
    for field in fields(cls):
        name = value = field.name
        if field.default_factory is not MISSING:
            made = f"_make_{name}()"
            value = f"{made} if {name} is _missing else {name}" if field.init else made
        elif not field.init:
            continue
        yield f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}"


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _comparison(cls: Any, frozen: bool) -> dict[str, Any]:
    """Return ``__eq__``, and ``__hash__`` of what cannot change, by the values of the fields."""
    names = [each.name for each in fields(cls) if each.compare]
    # Of a tuple, as a field may be unequal to itself; attrgetter makes none of a single one.
    values = attrgetter(*names, *names[:1]) if names else lambda _: ()

    def is_equal(self: object, other: object) -> Any:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    def value_hash(self: object) -> int:
        return hash(values(self))

    return {"__eq__": is_equal, "__hash__": value_hash if frozen else None}


def _refuse_to_set(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _dataclass
