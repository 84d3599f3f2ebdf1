"""Write an export in the format that is asked for by name."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import BinaryIO, NamedTuple

from flame.core.files.atomic import atomic_output
from flame.core.files.packed_output import packed_output
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.selection import Selection
from flame.core.report.table import Table
from flame.exporters import PACKED


class Exported(NamedTuple):
    """Hold what is exported: the ``tree`` of ``profile`` under ``selection``, called ``name``.

    ``is_part``: the tree is only a part of what the selection makes, and stands for itself: other
    metrics are not written besides.
    """

    tree: StackTree
    profile: Profile
    selection: Selection
    name: str
    is_part: bool = False

    def table(self) -> tuple[Table, list[str]]:
        """Make the table of all frames of the tree, those first that weigh most themselves.

        Returns notes on what is not in it, too.
        """
        from flame.exporters.tables.frame_table import FrameColumns

        found = FrameColumns(self.profile, self.tree, self.selection)
        return found.table(found.rows("self")), [*found.notes]


def open_export(path: str, format_name: str, *, replace: bool) -> AbstractContextManager[BinaryIO]:
    """Open the file at ``path`` to `write` that format to it; otherwise as `packed_output`."""
    if format_name in PACKED:
        return atomic_output(path, replace=replace)
    return packed_output(path, replace=replace)


def write(exported: Exported, format_name: str, file: BinaryIO) -> list[str]:
    """Write ``exported`` in the format of that name, one of `SUFFIXES`; return notes for the user.

    Raises as `project.project`, and UsageError where a library for the format is missing.
    """
    return _WRITERS[format_name](exported, file) or []


def _folded(exported: Exported, file: BinaryIO) -> None:
    from flame.exporters import folded

    folded.write(exported.tree, file)


def _speedscope(exported: Exported, file: BinaryIO) -> list[str]:
    from flame.exporters import speedscope

    tree, profile, selection, name, is_part = exported
    if is_part:
        return speedscope.write_tree(tree, file, name)
    return speedscope.write(profile, selection, file, name=name, first=tree)


def _pprof(exported: Exported, file: BinaryIO) -> list[str]:
    from flame.exporters import pprof

    tree, profile, selection, name, is_part = exported
    if is_part:
        return pprof.write_trees([tree], profile, file, name)
    return pprof.write(profile, selection, file, name=name, first=tree)


def _chrome(exported: Exported, file: BinaryIO) -> list[str]:
    from flame.exporters import chrome

    tree, profile, selection, name, _ = exported
    return chrome.write(tree, profile, selection, file, name=name)


def _svg(exported: Exported, file: BinaryIO) -> list[str]:
    from flame.exporters.pictures import svg

    return svg.write(exported.tree, file, title=svg.titled(exported.tree, exported.name))


def _html(exported: Exported, file: BinaryIO) -> list[str]:
    from flame.exporters.pictures import html

    tree, profile, selection, name, _ = exported
    return html.write(tree, profile, selection, file, name=name)


def _csv(exported: Exported, file: BinaryIO) -> list[str]:
    from flame.exporters.tables import files

    table, notes = exported.table()
    file.write(files.as_csv(table).encode())
    return notes


def _json(exported: Exported, file: BinaryIO) -> list[str]:
    from flame.exporters.tables import files

    table, notes = exported.table()
    file.write(files.as_json(table, exported.tree, exported.name).encode())
    return notes


def _parquet(exported: Exported, file: BinaryIO) -> list[str]:
    from flame.exporters.tables import files

    table, notes = exported.table()
    files.write_parquet(table, exported.tree, exported.name, file)
    return notes


_WRITERS: dict[str, Callable[[Exported, BinaryIO], list[str] | None]] = {
    "folded": _folded,
    "speedscope": _speedscope,
    "pprof": _pprof,
    "chrome": _chrome,
    "svg": _svg,
    "html": _html,
    "csv": _csv,
    "json": _json,
    "parquet": _parquet,
}
