"""What tests of the nsys reader share: a trace being built, and the reader on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from flame.core.model.raw import RawTrace
from flame.core.options import LoadOptions, Progress, silent
from flame.core.readers.nsys import reader
from flame.core.readers.sqlite.rows import SqliteSource
from tests.support.writers.nsysfile import NsysFile

Read = Callable[..., RawTrace]


@pytest.fixture
def trace() -> Iterator[NsysFile]:
    """An export being built, in memory: waiting for the disk would take ten times as long."""
    with NsysFile(":memory:") as file:
        yield file


@pytest.fixture
def old_trace() -> Iterator[NsysFile]:
    """The same in the schema of 2020."""
    with NsysFile(":memory:", "old") as file:
        yield file


def read_never(_: object, rows: object = None, /) -> Callable[[], Any]:
    """What would be read later, of a file that is closed then."""
    return lambda: pytest.fail("the file is closed")


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Decodes an export, with nothing attributed yet."""

    def decode(
        file: NsysFile, options: LoadOptions | None = None, progress: Progress = silent
    ) -> RawTrace:
        path = tmp_path / "trace.sqlite"
        file.db.commit()
        path.write_bytes(file.db.serialize())
        source = SqliteSource(path)
        try:
            return reader.read_tables(
                source, str(path), options or LoadOptions(), progress, read_never
            )
        finally:
            source.close()

    return decode
