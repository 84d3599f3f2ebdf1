"""Keep what a function found for as long as the object lives that it was found for."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import Lock, RLock
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

Key = TypeVar("Key")
Result = TypeVar("Result")


class _Kept(Generic[Result]):
    """Hold a result once there is one; whoever works it out, the others wait."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.results: list[Result] = []


def kept(function: Callable[[Key], Result]) -> Callable[[Key], Result]:
    """Call ``function`` once for each object, which must compare by identity; also from threads."""
    found: WeakKeyDictionary[Key, _Kept[Result]] = WeakKeyDictionary()
    adding = Lock()

    @wraps(function)
    def result(key: Key) -> Result:
        with adding:
            one = found.setdefault(key, _Kept())
        with one.lock:
            if not one.results:
                one.results.append(function(key))
            return one.results[0]

    return result
