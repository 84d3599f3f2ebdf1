"""Name the files that are opened together, for titles and for files written of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from flame.core.fetching.given_names import is_url, shown_name, shown_url
from flame.core.lazy_dataclass import dataclass
from flame.core.loading.source_labels import absolute_path, label_paths
from flame.core.readers.fdump.folder import is_folder, list_dumps
from flame.core.readers.shared.packed_files import SUFFIXES

if TYPE_CHECKING:
    from flame.core.model.meta import Meta
    from flame.core.model.profile import Profile


@dataclass(frozen=True)
class Inputs:
    """The files that are opened together; ``name``: what they are called.

    ``given`` has those that were given by other names, such as a URL or ``-``, with these.
    """

    paths: tuple[Path, ...]
    name: str = ""
    given: tuple[tuple[Path, str], ...] = ()

    @property
    def spelled(self) -> list[str]:
        """The files as they were given, as may be shown: URLs without what is secret in them."""
        return [shown_url(name) if is_url(name) else name for name in self.spelled_in_full]

    @property
    def spelled_in_full(self) -> list[str]:
        """The files as they were given, with passwords and signatures: not to be shown."""
        known = dict(self.given)
        return [known.get(path) or _unlike_stdin(str(path)) for path in self.paths]

    @property
    def is_local(self) -> bool:
        """Whether all are files of this machine that are still there afterwards."""
        return not self.given

    def respell(self, text: str) -> str:
        """Write in ``text`` files as they were given."""
        for path, name in self.given:
            text = text.replace(str(path), shown_name(name))
        return text

    def respell_profile(self, profile: Profile) -> Profile:
        """Return what was read of the files, which is called as they were given."""
        if not self.given:
            return profile
        sources = tuple(replace(one, meta=self._respell_meta(one.meta)) for one in profile.sources)
        warnings = tuple(map(self.respell, profile.warnings))
        meta = self._respell_meta(profile.meta)
        return replace(profile, meta=meta, sources=sources, warnings=warnings)

    def _respell_meta(self, meta: Meta) -> Meta:
        return replace(meta, path=self.respell(meta.path))

    @property
    def title(self) -> str:
        """The file's name; of several files their number, and the first and last label."""
        if self.name:
            return self.name
        if len(self.paths) == 1:
            return absolute_path(self.paths[0]).name or str(self.paths[0])
        labels = label_paths(self.paths)
        between = ", " if len(labels) == 2 else "…"
        return f"{len(labels)} traces: {labels[0]}{between}{labels[-1]}"

    @property
    def stem(self) -> str:
        """The name, without suffix, of files that are written of them."""
        if self.name:
            return re.sub(r"[^\w.-]+", "-", self.name).strip("-.") or "recording"
        if len(self.paths) == 1:
            return Path(_unpacked_name(self.title)).stem
        first = Path(label_paths(self.paths)[0]).name
        return f"{first}-and-{len(self.paths) - 1}-more"

    def hold(self, path: Path) -> bool:
        """Return whether ``path`` is one of the files, under whatever name."""
        for file in self._files():
            with suppress(OSError):
                if path.samefile(file):
                    return True
        return False

    def _files(self) -> Iterator[Path]:
        """Yield the files, those in folders too."""
        for path in self.paths:
            yield path
            if is_folder(path):
                with suppress(OSError):
                    yield from list_dumps(path)


def _unlike_stdin(name: str) -> str:
    return "./-" if name == "-" else name


def _unpacked_name(name: str) -> str:
    suffix = next((each for each in SUFFIXES if name.endswith(each)), "")
    return name.removesuffix(suffix)
