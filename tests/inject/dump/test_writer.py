"""Records reach the file whole and once, or are counted: threads, names, limits, permissions."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inject import build
from tests.inject.conftest import HIDDEN, PATIENT, SANITIZERS, WATCHED, small_file_system
from tests.inject.scenes import (
    ENDED,
    FULL,
    TIMEOUT_S,
    Bench,
    assert_consecutive,
    assert_references,
    lost,
    numbers,
    program,
)
from tests.support.writers.fdumprecords import (
    chunks,
    header,
    meta,
    records,
    schema,
    text,
    unsealed,
)

DISK_FULL, SIZE_LIMIT, CUPTI_DROPPED = 1, 2, 3
OPEN_RANGE = 9
MIB = 1 << 20
NOBODY, SOMEBODY = 64001, 64002

root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def bench(buildable: None, tmp_path: Path) -> Bench:
    return Bench(program(), tmp_path / "dumps")


def test_an_ended_dump_says_so_and_holds_no_more_than_its_chunks(bench: Bench) -> None:
    before = time.time_ns()
    bench.run("nothing")
    head = header(bench.dump())
    assert head["magic"] == b"FLAMEDMP"
    assert (head["version"], head["state"], head["flags"], head["dropped"]) == (1, ENDED, 0, 0)
    assert head["tail"] == bench.dump().stat().st_size
    assert head["start_monotonic"] < head["end_monotonic"] < time.monotonic_ns()
    assert before < head["start_unix"] < time.time_ns()
    assert bench.dump().name == f"{head['pid']}-{head['start_unix']:x}.fdump"


def test_only_the_owner_may_read_it(bench: Bench) -> None:
    bench.run("nothing")
    assert stat.S_IMODE(bench.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(bench.dump().stat().st_mode) == 0o600


def test_the_schema_describes_every_record_in_full(bench: Bench) -> None:
    bench.run("nothing")
    for key, layout in schema(bench.dump()).items():
        widths = [int(kind[1:]) for _, kind in layout["fields"]]
        assert sum(widths) == layout["size"], key
    assert sorted(layout["type"] for layout in schema(bench.dump()).values()) == list(range(1, 21))


def test_the_given_clock_is_used(bench: Bench) -> None:
    bench.run("nothing", FLAME_CLOCK=1_700_000_000_123_456_789)
    head = header(bench.dump())
    assert head["start_unix"] - head["start_monotonic"] == 1_700_000_000_123_456_789


def test_the_process_is_described_and_nothing_else_of_its_environment(bench: Bench) -> None:
    bench.run("nothing", RANK=3, WORLD_SIZE=8, TOKEN="very secret", OMPI_COMM_WORLD_RANK=5)
    facts = meta(bench.dump())
    assert facts["process"] == ["writer_test"]
    assert facts["executable"] == [str(bench.program)]
    assert facts["command"] == [f"{bench.program} nothing"]
    assert facts["host"] == [os.uname().nodename]
    assert facts["boot_id"] == [Path("/proc/sys/kernel/random/boot_id").read_text().strip()]
    assert facts["parent_pid"] == [str(os.getpid())]
    assert facts["library"] == [build.version()]
    assert (facts["rank"], facts["world_size"]) == (["3"], ["8"])
    assert "forked_from" not in facts
    assert b"very secret" not in bench.dump().read_bytes()


@pytest.mark.parametrize("rank", ["", "3a", "-1", "1" * 40])
def test_a_rank_that_is_no_number_is_none(bench: Bench, rank: str) -> None:
    bench.run("nothing", RANK=rank, SLURM_PROCID=2)
    assert meta(bench.dump())["rank"] == ["2"]


def test_threads_write_side_by_side(bench: Bench) -> None:
    bench.run("threads")
    for key in ("launch", "range", "kernel"):
        assert_consecutive(numbers(bench.dump(), key), dict.fromkeys(range(32), 5000))
    assert_references(bench.dump())
    assert header(bench.dump())["dropped"] == 0


def test_all_chunks_of_a_writer_are_sealed_but_its_last(bench: Bench) -> None:
    bench.run("threads")
    kinds = schema(bench.dump())
    for key in ("launch", "range", "kernel"):
        number, still_open = unsealed(bench.dump(), kinds[key]["type"])
        # A writer goes to another thread when its own has ended: there are 32 at most.
        assert 0 < still_open <= 32 < number


@pytest.mark.deep
def test_short_threads_share_chunks(bench: Bench) -> None:
    bench.run("churn")
    for key in ("launch", "range", "kernel"):
        assert_consecutive(numbers(bench.dump(), key), dict.fromkeys(range(10_000), 2))
    # 3.9 MB of records; a chunk of each of four types for each thread would be 2.6 GB.
    assert bench.dump().stat().st_size < 6 * MIB
    assert len(records(bench.dump())["open_range"]) == 0


def test_open_ranges_are_what_is_open(bench: Bench) -> None:
    bench.run("open")
    rows = records(bench.dump())["open_range"]
    # The other thread ended, and with it what it had left open.
    assert rows["start"].tolist() == [0, 1, 2]
    assert {kind for kind, _, _ in chunks(bench.dump())} >= {OPEN_RANGE}


def test_names_are_written_once(bench: Bench) -> None:
    bench.run("texts")
    of = records(bench.dump())
    assert meta(bench.dump())["note"] == ["once"]
    assert meta(bench.dump())["key"] == ["value"]
    named = [(int(row["id"]), text(of, int(row["text"]))) for row in of["name"]]
    assert named == [(7, "worker"), (7, "renamed")]
    # Cut before a character that is longer than what is left, and at the size itself.
    longest = max(of["text"].values(), key=len)
    assert longest == b"x" * (32 * 1024 - 1) + b"y"
    values = list(of["text"].values())
    assert len(values) == len(set(values))


def test_threads_agree_about_the_ids_of_names(bench: Bench) -> None:
    bench.run("same_names_in_threads")
    values = list(records(bench.dump())["text"].values())
    assert len(values) == len(set(values))


@pytest.mark.deep
def test_a_million_new_texts_and_records_fit_into_constant_memory(bench: Bench) -> None:
    most_kib = int(bench.run("a_million", FLAME_FLUSH_MS=10))
    of = records(bench.dump())
    assert header(bench.dump())["dropped"] == 0
    assert of["launch"]["start"].tolist() == list(range(1_000_000))
    assert text(of, int(of["launch"]["python"][777_777])) == "aten::mul, op_id = 777777"
    assert bench.dump().stat().st_size > 170 * MIB
    assert most_kib < 40 * 1024


def test_too_much_for_the_limit_is_counted(bench: Bench) -> None:
    tried = int(bench.run("flood", FLAME_MAX_MB=2))
    path = bench.dump()
    head, found = header(path), numbers(path)[0]
    assert path.stat().st_size <= 2 * MIB
    assert head["flags"] == FULL
    assert head["state"] == ENDED
    assert found == list(range(len(found)))  # what came later is missing, nothing in between
    assert len(found) + head["dropped"] == tried
    assert lost(path) == {(SIZE_LIMIT, 5): head["dropped"]}


def test_too_much_of_several_threads_is_counted(bench: Bench) -> None:
    tried = int(bench.run("flood_in_threads", FLAME_MAX_MB=3))
    path = bench.dump()
    found = numbers(path)
    assert sum(map(len, found.values())) + header(path)["dropped"] == tried
    assert_consecutive(found, {writer: len(own) for writer, own in found.items()})
    assert_references(path)


def test_the_limit_of_the_shell_does_not_kill_the_program(bench: Bench) -> None:
    tried = int(bench.run("limited_flood"))
    assert bench.dump().stat().st_size <= 4 * MIB
    assert len(numbers(bench.dump())[0]) + header(bench.dump())["dropped"] == tried


def test_little_address_space_is_enough(bench: Bench) -> None:
    assert bench.run("small_address_space") == "200000"
    assert_consecutive(numbers(bench.dump()), {0: 200_000})


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """An empty file system of 6 MiB."""
    with small_file_system(tmp_path / "disk", 6) as place:
        yield place


def test_a_full_disk_is_no_more_than_missing_records(bench: Bench, small_disk: Path) -> None:
    tried = int(bench.run("flood", FLAME_DIR=str(small_disk)))
    (path,) = small_disk.glob("*.fdump")
    head, found = header(path), numbers(path)[0]
    assert (head["flags"], head["state"]) == (FULL, ENDED)
    assert found == list(range(len(found)))
    assert len(found) > 50_000
    assert len(found) + head["dropped"] == tried
    assert lost(path) == {(DISK_FULL, 5): head["dropped"]}


def test_file_systems_that_cannot_reserve_room_are_filled_with_zeros(
    bench: Bench, small_disk: Path
) -> None:
    bench.run("threads", NO_FALLOCATE=1)
    assert_consecutive(numbers(bench.dump()), dict.fromkeys(range(32), 5000))
    tried = int(bench.run("flood", NO_FALLOCATE=1, FLAME_DIR=str(small_disk)))
    (path,) = small_disk.glob("*.fdump")
    assert len(numbers(path)[0]) + header(path)["dropped"] == tried


def test_a_full_disk_leaves_errno_to_the_program(bench: Bench, small_disk: Path) -> None:
    bench.run("errno_is_kept", FLAME_DIR=str(small_disk))


def test_no_room_at_all_is_no_dump(bench: Bench, small_disk: Path) -> None:
    (small_disk / "other").write_bytes(b"x" * 6 * MIB)
    assert bench.run("flood", FLAME_DIR=str(small_disk)) == "no dump"
    assert not list(small_disk.glob("*.fdump"))


def test_drops_of_others_are_added_up(bench: Bench) -> None:
    bench.run("drops", FLAME_FLUSH_MS=10)
    assert lost(bench.dump()) == {(CUPTI_DROPPED, 6): 7, (CUPTI_DROPPED, 7): 1}
    assert header(bench.dump())["dropped"] == 8
    assert len(records(bench.dump())["drop"]) == 3


def test_a_folder_behind_a_link_is_not_used(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    bench.folder.symlink_to(tmp_path / "elsewhere")
    assert bench.run("nothing") == "no dump"
    assert bench.run("nothing", FLAME_DIR=f"{bench.folder}/") == "no dump"
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.fixture
def public(buildable: None) -> Iterator[Path]:
    """A folder that every user can enter, with the program in it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        Path(place).chmod(0o755)
        shutil.copy(program(), place)
        yield Path(place)


def run_as(user: int, program: Path, folder: Path) -> str:
    env = {"FLAME_DIR": str(folder)}
    command = [str(program), "nothing"]
    done = subprocess.run(
        command, env=env, user=user, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
    )
    return done.stdout.strip()


@root_only
def test_the_folder_of_another_user_is_not_used(public: Path) -> None:
    for owner, expected in ((SOMEBODY, "no dump"), (NOBODY, ""), (0, "")):
        folder = public / str(owner)
        folder.mkdir()
        folder.chmod(0o777)
        os.chown(folder, owner, owner)
        assert run_as(NOBODY, public / "writer_test", folder) == expected
        assert len(list(folder.iterdir())) == (expected == "")


@root_only
def test_root_does_not_record_into_the_folder_of_another_user(public: Path) -> None:
    folder = public / "theirs"
    folder.mkdir()
    os.chown(folder, SOMEBODY, SOMEBODY)
    assert run_as(0, public / "writer_test", folder) == "no dump"
    assert list(folder.iterdir()) == []


@root_only
def test_a_setuid_program_is_not_recorded(public: Path) -> None:
    folder = public / "dumps"
    folder.mkdir()
    folder.chmod(0o777)
    os.chown(public / "writer_test", SOMEBODY, SOMEBODY)
    (public / "writer_test").chmod(0o4755)
    assert run_as(NOBODY, public / "writer_test", folder) == "no dump"
    assert list(folder.iterdir()) == []


@pytest.mark.deep
@pytest.mark.parametrize("kind", SANITIZERS)
def test_sanitizers_find_nothing(buildable: None, tmp_path: Path, kind: str) -> None:
    # Those of the library, whose object files it shares.
    flags = (HIDDEN, *WATCHED, *SANITIZERS[kind], PATIENT)
    watched = Bench(program(*flags), tmp_path / "dumps")
    for scene in ("threads", "churn", "exit_in_thread", "same_names_in_threads", "generations"):
        options: dict[str, Any] = {"FLAME_MAX_MB": 64, "TSAN_OPTIONS": "die_after_fork=0"}
        watched.run(scene, **options)
