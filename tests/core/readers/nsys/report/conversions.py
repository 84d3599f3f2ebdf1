"""Scripts in the place of nsys that convert a report, and what they leave."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from flame.core.options import Progress
from flame.core.readers.nsys.report import read_by_export
from flame.core.readers.signs.nsys import MAGIC

Nsys = Callable[[str], None]

HEAD = MAGIC + b"1.\n\x0bLocal (CLI)"

EXPORT = """
for word; do
  case "$word" in --output=*) output="${word#--output=}" ;; esac
  last="$word"
done
printf '%s\\n' "$@" >"$FOLDER/arguments"
echo run >>"$FOLDER/runs"
"""
COPY = EXPORT + 'cp "$FOLDER/made.sqlite" "$output"\n'


def export_report(path: Path, progress: Progress) -> Path:
    """Where the export of that report is."""
    return read_by_export(path, progress, lambda export, _: export).value


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text().splitlines())


def left_in_cache(folder: Path) -> list[str]:
    return [path.suffix for path in (folder / "cache").rglob("*") if path.is_file()]


def open_to_others(cache: Path) -> None:
    cache.mkdir(parents=True)
    cache.chmod(0o777)
