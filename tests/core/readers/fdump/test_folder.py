"""The dumps of a recording of several processes, in one folder, as one profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.errors import InputError, UsageError
from flame.core.loading.inputs import Inputs
from flame.core.loading.many import load, load_all
from flame.core.model.profile import Profile
from tests.support.writers.fdumpfile import START, UNIX, DumpFile

SECOND = 10**9


def process(
    folder: Path, pid: int, kernels: int = 1, after: int = 0, clock: int = 0, **facts: str
) -> Path:
    """The dump of a process that began ``after`` s and ran kernels of 10 ns each."""
    file = DumpFile(pid, start=START + after * SECOND, unix=UNIX + after * SECOND + clock)
    for key, value in ({"process": "python", "boot_id": "b"} | facts).items():
        file.meta(key, value)
    for row in range(kernels):
        file.kernel("k", 20 * row, 20 * row + 10, row + 1, tid=pid)
    folder.mkdir(exist_ok=True)
    return file.write(folder / f"{pid}-{file.unix:x}.fdump")


def labels(profile: Profile) -> list[str]:
    return [source.label for source in profile.sources]


def test_a_folder_is_all_its_processes(tmp_path: Path) -> None:
    run = tmp_path / "train.flame"
    process(run, 200, 3, rank="1")
    process(run, 100, 2, rank="0")
    (run / "cubins").mkdir()
    (run / "notes.txt").write_text("not a dump")
    profile = load(run)
    assert labels(profile) == ["rank 0", "rank 1"]
    assert profile.gpu_time == 50
    assert {one.pid for one in profile.processes} == {100, 200}
    assert load_all([run]).gpu_time == 50


def test_a_folder_of_one_dump_is_that_dump(tmp_path: Path) -> None:
    run = tmp_path / "train.flame"
    dump = process(run, 100, 2)
    profile = load(run)
    assert profile.gpu_time == 20
    assert profile.meta.path == str(dump)
    assert len(profile.sources) == 1


def test_processes_without_ranks_are_called_by_name_in_the_order_they_began(
    tmp_path: Path,
) -> None:
    run = tmp_path / "train.flame"
    process(run, 9, after=1)
    process(run, 100)
    process(run, 20, after=2, process="worker")
    assert labels(load(run)) == ["python [100]", "python [9]", "worker [20]"]


def test_workers_are_told_from_the_rank_that_started_them(tmp_path: Path) -> None:
    run = tmp_path / "train.flame"
    process(run, 50, process="torchrun")
    process(run, 101, after=1, rank="1")
    process(run, 100, after=2, rank="0")
    process(run, 102, after=3, rank="0")
    assert labels(load(run)) == [
        "rank 0 python [100]",
        "rank 0 python [102]",
        "rank 1",
        "torchrun [50]",
    ]


def test_programs_of_one_process_are_told_apart_by_number(tmp_path: Path) -> None:
    run = tmp_path / "train.flame"
    process(run, 100)
    process(run, 100, after=1)
    process(run, 7, after=2)
    assert labels(load(run)) == ["python [100]", "python [100] #2", "python [7]"]


def test_what_only_some_processes_had_is_told_once(tmp_path: Path) -> None:
    run = tmp_path / "train.flame"
    process(run, 100, library="1.0", python="3.11.7")
    process(run, 101, after=1, library="1.0")
    assert load(run).meta.producer == "flame 1.0, Python 3.11.7"


def test_of_several_folders_each_is_named(tmp_path: Path) -> None:
    for name in ("before", "after"):
        for rank in range(2):
            process(tmp_path / f"{name}.flame", 100 + rank, rank=str(rank))
    profile = load_all([tmp_path / "before.flame", tmp_path / "after.flame"])
    assert labels(profile) == [
        "before rank 0",
        "before rank 1",
        "after rank 0",
        "after rank 1",
    ]


def test_processes_that_did_nothing_are_left_out_and_counted(tmp_path: Path) -> None:
    run = tmp_path / "train.flame"
    process(run, 100)
    for pid in (101, 102):
        process(run, pid, kernels=0)
    profile = load(run)
    assert len(profile.processes) == 1
    assert profile.warnings[0] == (
        "2 processes of this recording did nothing that is recorded: left out"
    )


def test_where_no_process_did_anything_one_is_shown(tmp_path: Path) -> None:
    run = tmp_path / "train.flame"
    for pid in (100, 101):
        process(run, pid, kernels=0)
    profile = load(run)
    assert len(profile.activities) == 0
    assert "1 process of this recording did nothing that is recorded: left out" in profile.warnings


def test_a_dump_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    run = tmp_path / "train.flame"
    process(run, 100)
    bad = run / "7-0.fdump"
    bad.write_bytes(b"")
    profile = load(run)
    assert profile.gpu_time == 10
    assert profile.warnings[0] == f"{bad}: not a dump of flame: left out"


def test_a_folder_of_bad_dumps_says_why(tmp_path: Path) -> None:
    (tmp_path / "7-0.fdump").write_bytes(b"")
    with pytest.raises(InputError, match=r"7-0\.fdump: not a dump of flame"):
        load(tmp_path)


def test_a_folder_without_dumps_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"is a folder with no dump \(\*\.fdump\) and no other trace in it"
    ):
        load(tmp_path)


def test_a_dump_named_beside_its_folder_is_named_twice(tmp_path: Path) -> None:
    run = tmp_path / "train.flame"
    dump = process(run, 100)
    with pytest.raises(UsageError, match="is named twice"):
        load_all([run, dump])


def test_processes_one_after_the_other_keep_their_times(tmp_path: Path) -> None:
    run = tmp_path / "train.flame"
    process(run, 100)
    process(run, 101, after=60)
    profile = load(run)
    assert profile.duration == 60 * SECOND + 10
    assert profile.meta.origin == UNIX
    assert not any("aligned" in warning for warning in profile.warnings)


def test_processes_with_clocks_of_their_own_are_aligned_only_together(tmp_path: Path) -> None:
    run = tmp_path / "train.flame"
    process(run, 100)
    process(run, 101, after=60, clock=1)
    profile = load(run)
    assert any("each trace begins at 0" in warning for warning in profile.warnings)
    assert profile.duration == 10


def test_recordings_far_apart_begin_at_0_and_stay_whole(tmp_path: Path) -> None:
    for name, clock, later in (("a", 0, 0), ("b", 5, 1000)):
        for number in range(2):
            process(tmp_path / name, 100 + number, after=later + 60 * number, clock=clock)
    profile = load_all([tmp_path / "a", tmp_path / "b"])
    assert any("each recording begins at 0" in warning for warning in profile.warnings)
    assert profile.duration == 60 * SECOND + 10
    starts = profile.activities.start.tolist()
    assert starts == [0, 60 * SECOND, 0, 60 * SECOND]


def test_a_folder_gives_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "train.flame"
    run.mkdir()
    inputs = Inputs((run,))
    assert (inputs.title, inputs.stem) == ("train.flame", "train")
    monkeypatch.chdir(run)
    inside = Inputs((Path(),))
    assert (inside.title, inside.stem) == ("train.flame", "train")


def test_a_folder_holds_its_dumps(tmp_path: Path) -> None:
    run = tmp_path / "train.flame"
    dump = process(run, 100)
    inputs = Inputs((run,))
    assert inputs.hold(dump)
    assert not inputs.hold(run / "new.fdump")
    assert not inputs.hold(process(tmp_path / "other", 100))
