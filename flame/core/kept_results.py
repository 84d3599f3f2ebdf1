"""Keep what a function found for as long as the object lives that it was found for."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

Key = TypeVar("Key")
Result = TypeVar("Result")


def kept(function: Callable[[Key], Result]) -> Callable[[Key], Result]:
    """Call ``function`` once for each object, which must compare by identity."""
    found: WeakKeyDictionary[Key, Result] = WeakKeyDictionary()

    @wraps(function)
    def result(key: Key) -> Result:
        if key not in found:
            found[key] = function(key)
        return found[key]

    return result
