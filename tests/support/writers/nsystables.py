"""The tables and strings of an nsys SQLite export, written row by row."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from types import TracebackType
from typing import Self

from samples.nsys_schema import NEWEST_VERSION, TABLES_2020, TABLES_2026, create_sql, required

Text = str | bytes | int
Value = str | bytes | int | float | None

_SCHEMAS = {"new": TABLES_2026, "old": TABLES_2020}


class NsysTables:
    """Writes the rows of one export, with its table of strings and the version of its schema."""

    def __init__(self, path: str | Path, schema: str = "new") -> None:
        self.path = Path(path)
        self.db = sqlite3.connect(self.path)
        self._columns = _SCHEMAS[schema]
        self._old = schema == "old"
        self._strings: dict[str | bytes, int] = {}
        self._created: set[str] = set()
        self._metrics: dict[str, int] = {}
        self._named: set[tuple[int, int]] = set()
        self.create("StringIds")
        if not self._old:
            self.meta("EXPORT_SCHEMA_VERSION", NEWEST_VERSION)

    @classmethod
    def reopened(cls, path: Path) -> Self:
        """A file that was written and closed before, to be changed."""
        file = cls(":memory:")
        file.db.close()
        file.path, file.db = path, sqlite3.connect(path)
        tables = file.db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        file._created = {name for (name,) in tables}
        strings = file.db.execute("SELECT value, id FROM StringIds")
        file._strings = dict(strings)
        return file

    def loosen(self, table: str) -> None:
        """Let `table` hold anything: no column says of what kind it is, or that it is filled."""
        self.db.execute(f"CREATE TABLE loose AS SELECT * FROM {table}")
        self.db.execute(f"DROP TABLE {table}")
        self.db.execute(f"ALTER TABLE loose RENAME TO {table}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def create(self, table: str) -> None:
        """Creates `table` (empty) unless it is already there."""
        if table in self._created:
            return
        self.db.execute(create_sql(table, self._columns[table]))
        self._created.add(table)

    def insert(self, table: str, **values: Value) -> None:
        """Adds one row; NOT NULL columns that are not named become 0 (or '[]')."""
        self.create(table)
        row: dict[str, Value] = {**required(self._columns[table]), **values}
        slots = ", ".join("CAST(? AS TEXT)" if isinstance(v, bytes) else "?" for v in row.values())
        self.db.execute(
            f"INSERT INTO {table} ({', '.join(row)}) VALUES ({slots})", list(row.values())
        )

    def string(self, text: Text) -> int:
        """The StringIds id of `text`, registered on first use; an `int` is returned as it is."""
        if isinstance(text, int):
            return text
        if text not in self._strings:
            self._strings[text] = len(self._strings) + 1
            self.insert("StringIds", id=self._strings[text], value=text)
        return self._strings[text]

    def meta(self, key: str, value: str | bytes, capture: bool = False) -> None:
        """One meta-data record about the export or, with `capture`, about the recording."""
        table = "META_DATA_CAPTURE" if capture else "META_DATA_EXPORT"
        self.insert("EXPORT_META_DATA" if self._old else table, name=key, value=value)

    def close(self) -> None:
        """Commits and closes the file."""
        self.db.commit()
        self.db.close()
