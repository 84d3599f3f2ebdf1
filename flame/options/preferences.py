"""Remember between starts of the app how its user likes to look at traces."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

from flame.core.errors import UsageError
from flame.core.files.private import read_private, refuse_untrusted_folder
from flame.core.frame import COLOURS, check_levels
from flame.core.lazy_dataclass import dataclass
from flame.core.lazy_regex import lazy_regex
from flame.options.config import CHOICES, Config, state_path

_MOST_BYTES = 1 << 16
_MOST_KINDS = 32
_KIND = lazy_regex(r"[a-z, -]{1,80}")
_TIMEOUT = 1.0
"""Seconds that writing may still take when the app has been left."""

_BOTH = (True, False)
_VALUES: dict[str, tuple[object, ...]] = {
    "theme": CHOICES["theme"][1:],
    "details": _BOTH,
    "kernel_names": CHOICES["kernel_names"],
    "colours": COLOURS,
    "hide_framework": _BOTH,
    "fold_numbers": _BOTH,
}
"""What each setting may be."""

LEVELS = "levels"


class ShownLevels(NamedTuple):
    """Levels as a `Selection` has them: None for the usual; layers folded; below forward."""

    levels: tuple[str, ...] | None = None
    fold: bool = False
    forward: bool = True


@dataclass(frozen=True)
class Preferences:
    """Hold what is remembered: None, and no levels for a kind of trace, is nothing."""

    theme: str | None = None
    details: bool | None = None
    kernel_names: str | None = None
    colours: str | None = None
    hide_framework: bool | None = None
    fold_numbers: bool | None = None
    levels: Mapping[str, ShownLevels] = field(default_factory=dict)

    def without(self, settings: Collection[str]) -> Preferences:
        """Return the same without ``settings``, which something else says."""
        nothing: dict[str, Any] = {name: None for name in settings if name in _VALUES}
        levels = {} if LEVELS in settings else self.levels
        return replace(self, levels=levels, **nothing)

    @property
    def names(self) -> list[str]:
        """Name the settings of which something is remembered."""
        found = [name for name in _VALUES if getattr(self, name) is not None]
        return [*found, *[LEVELS] * bool(self.levels)]


class Memory:
    """Keep preferences in the file at ``path``, as they change; without one nothing is kept.

    Those of the ``settled`` settings neither count nor change. No failure is ever shown: what is
    not there, not the user's own or not understood is as if it had never been remembered.
    """

    def __init__(self, path: Path | None = None, settled: Iterable[str] = ()) -> None:
        self._path = path
        self._settled = frozenset(settled)
        self.preferences = preferences_of(_read(path) if path else {}).without(self._settled)
        self._changes: SimpleQueue[dict[str, Any] | None] = SimpleQueue()
        self._writer: Thread | None = None

    @property
    def is_kept(self) -> bool:
        """Whether anything is remembered for the next start."""
        return self._path is not None

    def remember(self, **settings: Any) -> None:
        """Remember ``settings``, and forget those that are None."""
        changes = {name: value for name, value in settings.items() if name not in self._settled}
        if changes and self.is_kept:
            self.preferences = replace(self.preferences, **changes)
            self._write(changes)

    def remember_levels(self, kind: str, levels: ShownLevels) -> None:
        """Remember ``levels`` for traces of ``kind``; the usual ones need no memory."""
        if not self.is_kept:
            return
        others = {key: own for key, own in self.preferences.levels.items() if key != kind}
        known = others if levels == ShownLevels() else {**others, kind: levels}
        self.preferences = replace(self.preferences, levels=known)
        self._write({LEVELS: {kind: None if levels == ShownLevels() else levels._asdict()}})

    def forget(self) -> Preferences:
        """Forget everything, and return what that was."""
        forgotten, self.preferences = self.preferences, Preferences()
        if forgotten.names:
            self._write(dict.fromkeys((*_VALUES, LEVELS)))
        return forgotten

    def settle(self) -> None:
        """Wait, not for long, until everything has been written."""
        if self._writer is not None:
            self._changes.put(None)
            self._writer.join(_TIMEOUT)
            self._writer = None

    def _write(self, changes: dict[str, Any]) -> None:
        """Have a thread write: a slow disk would hold up the app."""
        self._changes.put(changes)
        if self._writer is None:
            self._writer = Thread(target=self._write_all, daemon=True)
            self._writer.start()

    def _write_all(self) -> None:
        assert self._path is not None
        while (changes := self._changes.get()) is not None:
            with suppress(OSError):
                _change(self._path, changes)


def open_memory(config: Config) -> Memory:
    """Return what is remembered of the user whose configuration is ``config``, if that is wanted.

    What the file says itself is not remembered.
    """
    path = state_path().with_name("preferences.json")
    return Memory(path if config.remember and path.is_absolute() else None, config.given)


def preferences_of(fields: Mapping[str, Any]) -> Preferences:
    """Return what is understood of ``fields``, which may be anything."""
    plain = {name: fields[name] for name in _VALUES if _is_known(name, fields.get(name))}
    own = fields.get(LEVELS)
    kinds = list(own.items())[:_MOST_KINDS] if isinstance(own, dict) else []
    read = {kind: _shown_levels(value) for kind, value in kinds if _KIND.fullmatch(kind)}
    return Preferences(**plain, levels={kind: own for kind, own in read.items() if own})


def _is_known(name: str, value: object) -> bool:
    return isinstance(value, str | bool) and value in _VALUES[name]  # 1 is in (True, False), too


def _shown_levels(value: object) -> ShownLevels | None:
    """The levels that ``value`` says; None if it says none, or the usual."""
    if not isinstance(value, dict) or value.keys() != {*ShownLevels._fields}:
        return None
    levels, *switches = (value[name] for name in ShownLevels._fields)
    if not all(isinstance(switch, bool) for switch in switches):
        return None
    try:
        if levels is not None:
            levels = tuple(levels)
            check_levels(levels)
    except (TypeError, UsageError):
        return None
    found = ShownLevels(levels, *switches)
    return None if found == ShownLevels() else found


def _read(path: Path) -> dict[str, Any]:
    """What the file at ``path`` holds; nothing if that is no object."""
    try:
        fields = json.loads(read_private(path, _MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _change(path: Path, changes: Mapping[str, Any]) -> None:
    """Change the file, which other sessions may have changed as well. Raises OSError.

    What another version of flame has written there stays.
    """
    from flame.core.files.atomic import private_output

    refuse_untrusted_folder(path.parent)
    fields = _read(path)
    if changes.get(LEVELS):
        own = fields.get(LEVELS)
        levels = _changed(own if isinstance(own, dict) else {}, changes[LEVELS])
        changes = {**changes, LEVELS: levels or None}
    fields = _changed(fields, changes)
    with private_output(path) as file:
        file.write(f"{json.dumps(fields, indent=1)}\n".encode("ascii"))


def _changed(fields: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """``fields`` with ``changes``, and without those that are None."""
    merged = {**fields, **changes}
    return {name: value for name, value in merged.items() if value is not None}
