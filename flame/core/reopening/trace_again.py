"""Make of the trace itself what the cache does not keep, when somebody asks for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import partial
from operator import attrgetter
from pathlib import Path
from threading import Lock
from typing import Any

from flame.core.errors import InputError
from flame.core.lazy_dataclass import dataclass
from flame.core.model.frames import FrameTable
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions, Progress, silent
from flame.core.readers.shared.heads import read_head
from flame.core.reopening.profile_head import BUILDER_FIELDS, Builder
from flame.core.reopening.trace_identity import TraceIdentity, identify

Load = Callable[[Path, LoadOptions, Progress], Profile]
"""Reads the trace at a path and attributes it."""


@dataclass(eq=False)
class TraceAgain:
    """Load the trace at ``path`` once more, if it is still the one called ``identity``.

    ``frames`` are those that it had. What is made of it is kept, its activities are not.
    """

    path: Path
    options: LoadOptions
    identity: TraceIdentity
    load: Load
    frames: FrameTable
    _builders: dict[str, Any] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def builder(self, name: Builder) -> Callable[..., Any]:
        """Return what makes the part of a profile called ``name``, as `Profile` takes it.

        Called it may take as long as the first load did, and raise InputError.
        """
        return partial(self._build, name)

    def _build(self, name: Builder, *args: Any) -> Any:
        with self._lock:
            if not self._builders:
                profile = self.profile()
                self._builders = {
                    key: attrgetter(of)(profile) for key, of in BUILDER_FIELDS.items()
                }
        return self._builders[name](*args)

    def profile(self) -> Profile:
        """Load all of it; InputError where it is not what it was."""
        self.check()
        profile = self.load(self.path, self.options, silent)
        self.check()
        if profile.frames.frames != self.frames.frames:
            raise self._changed()
        return profile

    def check(self) -> None:
        """Raise InputError, which is short, where the trace has changed or is gone."""
        try:
            read_head(self.path)  # knows best what to say of a file that has gone
        except InputError as error:
            raise InputError(str(error).replace(str(self.path), self.path.name)) from None
        if identify(self.path) != self.identity:
            raise self._changed()

    def _changed(self) -> InputError:
        return InputError(f"{self.path.name}: has changed since it was opened: open it again")
