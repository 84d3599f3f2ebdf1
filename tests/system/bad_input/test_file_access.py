"""Files that others write, change or forbid to read: opened as they are, or refused soon."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from flame.core.errors import InputError
from flame.core.loading.many import load
from tests.support.hostile.bad_files import KERNEL, PAGE, RUNTIME, plain
from tests.support.hostile.odd_files import nested, wal_mode
from tests.system.bad_input.conftest import check_sums, refusal, untouched

NOBODY = 65534


@contextmanager
def another_program(code: str) -> Iterator[None]:
    """Run Python ``code`` in another process until it prints a line; end it afterwards."""
    command = [sys.executable, "-c", f"import sqlite3, sys\n{code}\nprint(flush=True)\ninput()"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "\n"
        yield
        process.communicate("\n")


def transaction(path: Path, *statements: str) -> str:
    """Code that leaves a transaction on the database at ``path`` open."""
    connect = f"db = sqlite3.connect({str(path)!r}, isolation_level=None)"
    return "\n".join([connect, *(f"db.execute({statement!r})" for statement in statements)])


def test_a_locked_database_is_refused_soon(tmp_path: Path) -> None:
    path = plain(tmp_path)
    with another_program(transaction(path, "BEGIN EXCLUSIVE")), untouched(tmp_path):
        assert "locked by a program that is writing it" in refusal(path)


def test_a_transaction_that_has_not_reached_the_file_is_no_obstacle(tmp_path: Path) -> None:
    path = plain(tmp_path)
    insert = "INSERT INTO StringIds VALUES (99999, 'later')"
    with another_program(transaction(path, "BEGIN", insert)), untouched(tmp_path):
        assert load(path).gpu_time == 1_040


def _shrink(path: Path) -> None:
    os.truncate(path, 3 * PAGE)


def _overwrite(path: Path) -> None:
    path.write_bytes(random.Random(2).randbytes(path.stat().st_size))


def _delete_rows(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        for table in (KERNEL, RUNTIME, "NVTX_EVENTS"):
            database.execute(f"DELETE FROM {table} WHERE rowid % 2")
        database.commit()


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


@pytest.mark.parametrize("change", [_shrink, _overwrite, _delete_rows, _remove])
@pytest.mark.parametrize("stage", ["reading GPU activities", "reading API calls"])
def test_a_file_that_changes_while_it_is_read(change: object, stage: str, tmp_path: Path) -> None:
    path = nested(70_000)(tmp_path)  # ranges in more than one chunk
    seen = False

    def progress(now: str, done: int, expected: int) -> None:
        nonlocal seen
        if now == stage and not seen:
            seen = True
            assert callable(change)
            change(path)

    try:
        check_sums(load(path, progress=progress))
    except InputError as error:
        assert str(error).startswith(f"{path}: ")
    assert seen


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that every user can enter; pytest's own are private."""
    folder = Path(tempfile.mkdtemp(prefix="flame-bad-input-"))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@contextmanager
def without_privileges() -> Iterator[None]:
    """File permissions hold; root is nobody for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_file_without_permission_is_refused(public_folder: Path) -> None:
    path = plain(public_folder)
    path.chmod(0)
    with without_privileges():
        assert "no permission to read it" in refusal(path)


def test_a_folder_without_permission_is_refused(public_folder: Path) -> None:
    path = plain(public_folder)
    public_folder.chmod(0)
    with without_privileges():
        assert "no permission" in refusal(path)


@pytest.mark.parametrize("make", [plain, wal_mode])
def test_a_read_only_file_in_a_read_only_folder_opens(make: object, public_folder: Path) -> None:
    assert callable(make)
    path = make(public_folder)
    path.chmod(0o444)
    public_folder.chmod(0o555)
    with without_privileges():
        assert load(path).gpu_time == 1_040


def test_the_library_does_not_wait_for_the_writer_of_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    os.mkfifo(path)
    assert refusal(path) == f"{path}: not a regular file; copy it to one first"
