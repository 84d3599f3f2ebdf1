"""Ask how and where to export what the report view shows, and write it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from flame.core.files.packed_output import packed_output
from flame.core.loading.inputs import Inputs
from flame.core.units import format_counted
from flame.exporters.tables.files import as_csv
from flame.reporting.links import links
from flame.reporting.markdown import as_markdown
from flame.reporting.report_json import as_json
from flame.tui.dialogs.write_files import ExportFormat, OutputFile
from flame.tui.dialogs.writing import WritingDialog

if TYPE_CHECKING:
    from flame.core.options import LoadOptions
    from flame.core.projection.selection import Selection
    from flame.core.report.table import Section, Table

FORMATS = (
    ExportFormat("md", "Markdown", ".report.md", "tables, for a comment on a pull request"),
    ExportFormat("csv", "CSV", ".csv", "one table with all its rows, times in ns: spreadsheets"),
    ExportFormat("json", "JSON", ".report.json", "as of flame report --json: for scripts"),
)
SCOPES = ("this section", "all sections")

_MARKDOWN_ROWS = 100
_JSON_ROWS = 1_000


class ReportExportDialog(WritingDialog):
    """Write the section on screen, its ``table`` with the selected row, or ``every`` section."""

    def __init__(
        self,
        inputs: Inputs,
        options: LoadOptions,
        selection: Selection,
        section: Section,
        table: Table | None,
        every: list[Section],
    ) -> None:
        formats = FORMATS if table is not None else (FORMATS[0], FORMATS[2])
        super().__init__(inputs, formats, SCOPES)
        self._options = options
        self._selection = selection
        self._section = section
        self._table = table
        self._every = every

    @property
    def has_scope(self) -> bool:
        return self.format.key != "csv"

    def scope_about(self) -> str:
        if not self.has_scope and self._table is not None:
            rows = format_counted(len(self._table.rows), "row", "rows")
            title = self._table.title or self._section.title
            return f"the table with the selected row: {title}, {rows}"
        if self.everything:
            return f"{format_counted(len(self._every), 'section', 'sections')}, as far as known"
        return f"{self._section.name}: {self._section.title}"

    def terms(self) -> list[tuple[str, str]]:
        return [(format.title, format.about) for format in FORMATS]

    def begin(self, target: OutputFile) -> None:
        text = self._text()
        self.start(lambda: _write(text(), target))

    def _text(self) -> Callable[[], str]:
        """What makes the text of what is chosen."""
        sections = self._every if self.everything else [self._section]
        key, table = self.format.key, self._table
        if key == "csv" and table is not None:
            return lambda: as_csv(table)
        if key == "md":
            return lambda: as_markdown(sections, _MARKDOWN_ROWS)
        paths = self._inputs.spelled
        link = links(paths, self._options, self._selection)
        return lambda: as_json(sections, _JSON_ROWS, link, {"path": paths})


def _write(text: str, target: OutputFile) -> str:
    with packed_output(target.path, replace=target.there) as file:
        size = file.write(text.encode("utf-8", "replace"))
    return f"wrote {target.path}: {format_counted(size, 'byte', 'bytes')} of the report"
