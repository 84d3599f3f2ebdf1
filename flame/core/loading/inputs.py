"""Name the files that are opened together, for titles and for files written of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from flame.core.lazy_dataclass import dataclass
from flame.core.loading.source_labels import absolute_path, label_paths
from flame.core.readers.fdump.folder import is_folder, list_dumps


@dataclass(frozen=True)
class Inputs:
    """The files that are opened together, as they were given; ``name``: what they are called."""

    paths: tuple[Path, ...]
    name: str = ""

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
            return Path(self.title.removesuffix(".gz")).stem
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
