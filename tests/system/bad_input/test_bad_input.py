"""Bad input ends in one clear line; odd input opens; the user's folder stays as it was."""

from __future__ import annotations

import gzip
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.cli.main import main
from flame.core.errors import InputError
from flame.core.loading.many import load
from flame.core.model.profile import Profile
from flame.core.projection.levels import LEVELS
from tests.support.hostile.bad_files import (
    KERNEL,
    PAGE,
    REFUSED,
    RUNTIME,
    mutated,
    plain,
    remade,
    whole_trace,
)
from tests.support.hostile.bad_texts import (
    BOMBS,
    HOSTILE_JSON,
    PACKED,
    WHOLE,
    deep,
    hopeless,
    spoilt,
)
from tests.support.hostile.odd_files import ACCEPTED, HOSTILE_TEXTS, NAMES, nested, wal_mode
from tests.support.oracles.plain_sql import recorded_gpu_time
from tests.support.paths import ROOT
from tests.support.project_tree import project_tree
from tests.support.tiers import deep_except, examples

NOBODY = 65534
LONGEST = 60  # seconds for one test, on a busy machine


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    """A test that hangs fails instead."""

    def give_up(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"no answer in {LONGEST} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LONGEST)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@contextmanager
def untouched(folder: Path) -> Iterator[None]:
    """The files of ``folder``, their content and their times are the same afterwards."""
    before = _listing(folder)
    yield
    assert _listing(folder) == before


def _listing(folder: Path) -> dict[str, tuple[int, bytes]]:
    found = {}
    for path in folder.rglob("*"):
        content = path.read_bytes() if path.is_file() and os.access(path, os.R_OK) else b""
        found[str(path)] = (path.lstat().st_mtime_ns, content)
    return found


def refusal(path: Path) -> str:
    """The line with which ``path`` is refused: one line that names the file."""
    with pytest.raises(InputError) as caught:
        load(path)
    line = str(caught.value)
    assert line.splitlines() == [line]
    assert line.startswith(" ".join(f"{path}: ".splitlines()))
    assert caught.value.exit_code == 3
    return line


def check_sums(profile: Profile) -> None:
    """Under every metric the leaves of the tree add up to the table, and nothing is negative."""
    for metric in profile.metrics:
        table = profile.table(metric)
        for levels in (None, LEVELS):
            tree = project_tree(profile, levels, metric=metric.key)
            total = sum(metric.values(table).tolist())
            assert sum(tree.own.tolist()) == int(tree.total[0]) == total
            assert int(tree.count[0]) == len(table)
            assert min(tree.own.tolist()) >= 0


@pytest.mark.parametrize("case", REFUSED)
def test_bad_files_are_refused_in_one_line_and_left_alone(case: str, tmp_path: Path) -> None:
    make, says = REFUSED[case]
    path = make(tmp_path)
    with untouched(tmp_path):
        assert re.search(says, refusal(path))


@pytest.mark.parametrize("case", ACCEPTED)
def test_odd_files_open_with_true_sums_and_are_left_alone(case: str, tmp_path: Path) -> None:
    path = ACCEPTED[case](tmp_path)
    with untouched(tmp_path):
        profile = load(path)
        check_sums(profile)
    assert profile.gpu_time == recorded_gpu_time(path)


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_any_file_name_opens(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    try:
        plain(tmp_path).rename(path)
    except OSError as error:
        pytest.skip(f"no such name on this file system: {error.strerror}")
    with untouched(tmp_path):
        assert load(path).gpu_time == 1_040


def test_a_relative_path_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(plain(tmp_path).parent)
    assert load("trace.sqlite").gpu_time == 1_040


def test_a_path_too_long_for_sqlite_is_named_as_the_reason(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["folder" * 20] * 5)
    folder.mkdir(parents=True)
    path = plain(tmp_path).rename(folder / "trace.sqlite")
    assert "path is too long" in refusal(path)


@pytest.mark.parametrize("sixteenths", deep_except(range(0, 16, 5), range(16)))
@pytest.mark.parametrize("extra", [0, 37], ids=["even", "uneven"])
def test_a_file_that_is_cut_off_says_how_much_is_there(
    sixteenths: int, extra: int, tmp_path: Path
) -> None:
    path = plain(tmp_path)
    whole = path.stat().st_size
    cut = whole * sixteenths // 16 // PAGE * PAGE + extra
    os.truncate(path, cut)
    expected = f"cut off: {cut:,} of at least" if cut > 37 else "is empty|cut off: 37 of"
    assert re.search(expected, refusal(path))


def test_a_last_page_that_is_cut_off_is_noticed(tmp_path: Path) -> None:
    path = plain(tmp_path)
    whole = path.stat().st_size
    os.truncate(path, whole - 1)
    assert f"{whole - 1:,} of at least {whole:,} bytes" in refusal(path)


def opens_or_refuses(path: Path) -> None:
    """Damage that cannot be noticed still leaves sums that agree."""
    try:
        profile = load(path)
    except InputError as error:
        assert str(error).splitlines() == [str(error)]
        assert str(error).startswith(f"{path}: ")
    else:
        check_sums(profile)


@pytest.mark.parametrize("seed", deep_except(range(16), range(80)))
def test_damaged_pages_open_or_are_refused(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    path.write_bytes(mutated(whole_trace(), seed))
    with untouched(tmp_path):
        opens_or_refuses(path)


@examples(0.5)
@given(st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=40))
def test_bytes_changed_anywhere_open_or_are_refused(edits: list[tuple[float, int]]) -> None:
    data = bytearray(whole_trace())
    for place, value in edits:
        data[int(place * len(data))] = value
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.sqlite"
        path.write_bytes(data)
        opens_or_refuses(path)


@pytest.mark.parametrize("seed", deep_except(range(8), range(60)))
@pytest.mark.parametrize("format", WHOLE)
def test_damaged_text_opens_or_is_refused(format: str, seed: int, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(spoilt(WHOLE[format], seed))
    with untouched(tmp_path):
        opens_or_refuses(path)


@pytest.mark.parametrize("part", deep_except([0, 3, 7], range(8)))
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
@pytest.mark.parametrize("format", WHOLE)
def test_text_that_is_cut_off_opens_or_is_refused(
    format: str, packed: bool, part: int, tmp_path: Path
) -> None:
    whole = gzip.compress(WHOLE[format]) if packed else WHOLE[format]
    path = tmp_path / "trace.json"
    path.write_bytes(whole[: len(whole) * part // 8])
    opens_or_refuses(path)


@pytest.mark.parametrize("case", HOSTILE_JSON)
def test_hostile_json_opens_or_is_refused(case: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(HOSTILE_JSON[case])
    opens_or_refuses(path)


@pytest.mark.parametrize("case", PACKED)
def test_other_archives_are_told_by_name(case: str, tmp_path: Path) -> None:
    data, says = PACKED[case]
    path = tmp_path / "trace.json"
    path.write_bytes(data)
    assert re.search(says, refusal(path))


@pytest.mark.parametrize("case", deep_except(["zeros"], BOMBS))
def test_an_archive_of_a_gigabyte_does_not_fill_the_memory(case: str, tmp_path: Path) -> None:
    make, says = BOMBS[case]
    path = make(tmp_path)
    tracemalloc.start()
    try:
        assert re.search(says, refusal(path))
        assert tracemalloc.get_traced_memory()[1] < 400 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("case", deep_except(list(deep(1))[:1], deep(1)))
def test_what_is_nested_far_too_deep_opens_and_says_so(case: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(deep(20_000)[case])
    profile = load(path)
    check_sums(profile)
    assert re.search("more than [0-9,]+ frames: [1-9]|1 damaged", " ".join(profile.warnings))


@pytest.mark.deep
@pytest.mark.parametrize("case", hopeless(1))
def test_damage_everywhere_takes_as_long_as_the_file_is(case: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(hopeless(20_000)[case])  # quadratic, each would take minutes
    profile = load(path)
    assert profile.warnings


def test_too_little_memory_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("flame.core.attribution.resolved.resolve_stacks", fail)
    path = tmp_path / "stacks.folded"
    path.write_bytes(WHOLE["folded"])
    assert "not enough memory" in refusal(path)


def test_a_schema_that_is_no_utf8_is_refused_as_damaged(tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    path.write_bytes(whole_trace().replace(b"CREATE TABLE StringIds", b"CREATE TAB\xc1E StringIds"))
    assert "damaged: its schema" in refusal(path)


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


@pytest.mark.deep
def test_ranges_nested_a_million_deep_open_and_say_so(tmp_path: Path) -> None:
    profile = load(nested(1_000_000)(tmp_path))
    assert any("999,500 NVTX ranges are nested deeper than 500" in w for w in profile.warnings)
    assert profile.gpu_time == 10


def test_activities_without_times_are_counted(tmp_path: Path) -> None:
    profile = load(ACCEPTED["null in end"](tmp_path))
    assert any("20 GPU activities were recorded without" in line for line in profile.warnings)


def run_flame(*arguments: str | Path, stdin: int = subprocess.DEVNULL) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of the command line."""
    command = [sys.executable, "-m", "flame", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, stdin=stdin, capture_output=True, timeout=LONGEST, env=environment
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


COMMANDS = {
    "info": ["info", "PATH"],
    "info --json": ["info", "PATH", "--json"],
    "export": ["export", "PATH", "-f", "folded", "-o", "-"],
    "view": ["view", "PATH", "--print"],
}


def _arguments(command: str, path: Path) -> list[str]:
    return [str(path) if word == "PATH" else word for word in COMMANDS[command]]


@pytest.mark.parametrize(
    ("command", "case"),
    [
        ("info", "missing"),
        ("export", "directory"),
        ("view", "dangling link"),
        ("info --json", "link to itself"),
        ("export", "empty"),
        ("view", "random bytes"),
        ("info", "picture"),
        ("info --json", "header of a database"),
        ("export", "another program's database"),
        ("view", "schema that is no text"),
        ("info", "unmerged write-ahead log"),
        ("export", "hot journal"),
        ("view", "centuries of kernels"),
    ],
)
def test_the_command_line_complains_in_one_line(command: str, case: str, tmp_path: Path) -> None:
    path = REFUSED[case][0](tmp_path)
    with untouched(tmp_path):
        code, out, complaint = run_flame(*_arguments(command, path))
    assert (code, out) == (3, "")
    assert re.fullmatch(r"flame: [^\n]+\n", complaint)
    assert "internal error" not in complaint


def test_a_device_is_refused(tmp_path: Path) -> None:
    code, out, complaint = run_flame("info", "/dev/zero")
    assert (code, out) == (3, "")
    assert complaint == "flame: /dev/zero: not a regular file; copy it to one first\n"


def test_the_library_does_not_wait_for_the_writer_of_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    os.mkfifo(path)
    assert refusal(path) == f"{path}: not a regular file; copy it to one first"


@pytest.mark.deep
def test_a_view_that_takes_years_can_be_interrupted(tmp_path: Path) -> None:
    wide = ", ".join(f"old AS o{number}" for number in range(9))
    none = "o0.start + o8.start < -1"  # of rows there would soon be too many
    view = f"CREATE VIEW {KERNEL} AS SELECT o1.start, o2.end FROM {wide} WHERE {none}"
    path = remade(view)(tmp_path)
    command = [sys.executable, "-m", "flame", "info", str(path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(3)
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=LONGEST // 2)
    finally:
        process.kill()
    assert (process.returncode, complaint) == (130, "")


ODD = [*HOSTILE_TEXTS, "no names", "no rows", "absurd calls", "deep ranges"]


@pytest.mark.parametrize("case", deep_except({*ODD} - {"names of a million characters"}, ODD))
@pytest.mark.parametrize("command", deep_except(["info"], COMMANDS))
def test_the_command_line_survives_odd_files(
    command: str, case: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = ACCEPTED[case](tmp_path)
    with untouched(tmp_path):
        code = main(_arguments(command, path))
    out, complaints = capfd.readouterr()
    assert code == (4 if (command, case) == ("export", "no rows") else 0)
    assert all(line.startswith("flame: ") for line in complaints.splitlines())
    assert command == "export" or not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e]", out)
