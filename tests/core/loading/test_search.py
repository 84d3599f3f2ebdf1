"""The search of a folder: what is a trace, what is passed over, and how far it goes."""

from __future__ import annotations

import gzip
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from flame.core.errors import InputError
from flame.core.loading import search
from flame.core.loading.many import load
from flame.core.loading.search import RECORDING, FolderSearch, FoundTrace, look_at
from flame.core.readers.formats import FileHead, detect_format
from tests.conftest import TRACES, needs_traces
from tests.support.paths import SAMPLES
from tests.support.writers.fdumpfile import DumpFile
from tests.support.writers.kinetofile import KinetoFile
from tests.support.writers.nsysfile import NsysFile

FOLDED = "a;b 3\na;c 4\n"


def found(folder: Path) -> list[FoundTrace]:
    return list(filter(None, FolderSearch(folder).looks()))


def names(folder: Path) -> list[str]:
    """What is found, by paths in ``folder``."""
    traces = found(folder)
    assert all(len(trace.paths) == 1 for trace in traces)
    return sorted(str(trace.paths[0].relative_to(folder)) for trace in traces)


def write(path: Path, content: str | bytes = FOLDED) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def export(path: Path, *gpus: str) -> Path:
    with NsysFile(path) as file:
        for number, name in enumerate(gpus):
            file.gpu(number, name, pid=1)
        file.kernel("gemm", 0, 10)
    return path


# What is found


def test_every_format_is_told_by_what_is_in_the_file(tmp_path: Path) -> None:
    export(tmp_path / "a.bin")
    kineto = KinetoFile()
    kineto.op("aten::mm", 0, 10)
    kineto.write(tmp_path / "b.txt")
    write(tmp_path / "c.gz", gzip.compress(FOLDED.encode()))
    write(tmp_path / "d", '{"$schema": "https://www.speedscope.app/file-format-schema.json"}')
    write(tmp_path / "e.nsys-rep", "NVIDIA Tegra Profiler Report x")
    write(tmp_path / "f.ncu-rep", "NVR\0")
    assert {str(trace.paths[0].name): trace.format for trace in found(tmp_path)} == {
        "a.bin": "nsys export",
        "b.txt": "PyTorch",
        "c.gz": "folded stacks",
        "d": "speedscope",
        "e.nsys-rep": "nsys report",
        "f.ncu-rep": "ncu report",
    }


def test_what_is_known_of_a_trace(tmp_path: Path) -> None:
    path = export(tmp_path / "a.sqlite", "NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3")
    os.utime(path, (1e9, 1e9))
    (trace,) = found(tmp_path)
    assert trace == FoundTrace(
        (path,), "nsys export", path.stat().st_size, 1e9, ("NVIDIA H100 80GB HBM3",) * 2
    )


NO_TRACES: dict[str, str | bytes] = {
    "notes.txt": "Some words, and more of them.\nAnd a line.\n",
    "model.json": '{"layers": 3}',
    "devtools.json": '{"traceEvents": [{"ph": "X", "cat": "devtools.timeline"}]}',
    "empty": "",
    "weights.bin": bytes(range(256)) * 100,
    "half.gz": gzip.compress(FOLDED.encode())[:5],
    "twice.gz": gzip.compress(gzip.compress(FOLDED.encode())),
    "image.svg": "<svg xmlns=''></svg>",
}


@pytest.mark.parametrize("name", NO_TRACES)
def test_what_is_no_trace_is_left_out(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, NO_TRACES[name])
    assert found(tmp_path) == []


def test_a_database_of_another_program_is_no_trace(tmp_path: Path) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as database:
        database.execute("CREATE TABLE songs (name)")
    assert found(tmp_path) == []


def test_a_damaged_export_is_listed_to_be_told_what_is_wrong_with_it(tmp_path: Path) -> None:
    whole = export(tmp_path / "whole", "NVIDIA H100").read_bytes()
    write(tmp_path / "cut.sqlite", whole[:9000])
    assert names(tmp_path) == ["cut.sqlite", "whole"]


def test_json_that_says_late_what_it_is_is_found(tmp_path: Path) -> None:
    text = '{"metadata": "' + "x" * 40_000 + '", "schemaVersion": 1, "traceEvents": []}'
    write(tmp_path / "a.json", text)
    assert names(tmp_path) == ["a.json"]


def test_a_long_text_is_told_without_its_last_line(tmp_path: Path) -> None:
    write(tmp_path / "long.folded", "main;work;inner 5\n" * 3000)
    write(tmp_path / "words.txt", "word 5\n" * 3000)
    assert names(tmp_path) == ["long.folded", "words.txt"]


def test_a_folder_of_dumps_is_one_recording(tmp_path: Path) -> None:
    folder = tmp_path / "run.flame"
    folder.mkdir()
    for pid in (1, 2):
        DumpFile(pid).write(folder / f"{pid}-a.fdump")
    write(folder / "notes.folded")
    sizes = sum(dump.stat().st_size for dump in folder.glob("*.fdump"))
    traces = {trace.paths[0]: trace for trace in found(tmp_path)}
    assert set(traces) == {folder, folder / "notes.folded"}
    assert (traces[folder].format, traces[folder].size) == (RECORDING, sizes)
    assert look_at([folder]) == traces[folder]


# How far


def test_summaries_beside_dumps_are_of_the_recording(tmp_path: Path) -> None:
    run = tmp_path / "run.flame"
    run.mkdir()
    for name in ("1-1", "1-2"):
        DumpFile().write(run / f"{name}.fdump")
    for name in ("1-1", "1-2", "all"):
        write(run / f"{name}.flamesum", b"FLAMESUM" + bytes(64))
    assert names(tmp_path) == ["run.flame", "run.flame/all.flamesum"]


def test_folders_below_are_searched_the_nearest_first(tmp_path: Path) -> None:
    write(tmp_path / "a/b/c.folded")
    write(tmp_path / "z/near.folded")
    write(tmp_path / "here.folded")
    paths = [str(trace.paths[0].relative_to(tmp_path)) for trace in found(tmp_path)]
    assert paths == ["here.folded", "z/near.folded", "a/b/c.folded"]


def test_it_goes_so_deep_and_says_where_there_is_more(tmp_path: Path) -> None:
    write(tmp_path / "1/2/3/deep.folded")
    within = FolderSearch(tmp_path, depth=3)
    assert any(within.looks()) and not within.cut
    above = FolderSearch(tmp_path, depth=2)
    assert not any(above.looks()) and above.cut


def test_it_looks_at_so_many_and_says_where_there_is_more(tmp_path: Path) -> None:
    for number in range(20):
        write(tmp_path / f"{number}.folded")
    every = FolderSearch(tmp_path, most=20)
    assert sum(map(bool, every.looks())) == 20 and not every.cut
    some = FolderSearch(tmp_path, most=19)
    assert sum(map(bool, some.looks())) == 19 and some.cut


def test_hidden_and_installed_files_are_passed_over(tmp_path: Path) -> None:
    for place in (".git", ".venv/x", "node_modules", "v/lib/site-packages", "__pycache__"):
        write(tmp_path / place / "a.folded")
    write(tmp_path / ".hidden.folded")
    assert names(tmp_path) == []


def test_links_are_followed_and_nothing_is_found_twice(tmp_path: Path) -> None:
    real, folder = tmp_path / "real", tmp_path / "folder"
    write(real / "a.folded")
    folder.mkdir()
    (folder / "data").symlink_to(real)
    (folder / "again").symlink_to(real)
    (folder / "b.folded").hardlink_to(real / "a.folded")
    (real / "up").symlink_to(folder)
    (real / "self").symlink_to("self")
    (folder / "nowhere").symlink_to("/nowhere/at/all")
    assert names(folder) == ["b.folded"]
    searched = FolderSearch(folder)
    assert sum(1 for _ in searched.looks()) < 10  # not the same folders over and over


@pytest.fixture
def odd(tmp_path: Path) -> Iterator[Path]:
    """A folder with everything that is no file."""
    os.mkfifo(tmp_path / "pipe.json")
    os.mkfifo(tmp_path / "pipe.fdump")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "kernel").symlink_to("/proc")
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(tmp_path)  # the path would be too long
        listening.bind("socket.sqlite")
        os.chdir(here)
        yield tmp_path


def test_what_would_be_waited_for_is_not_opened(odd: Path) -> None:
    write(odd / "a.folded")
    assert names(odd) == ["a.folded"]
    assert look_at([odd / "pipe.json"]) is None
    assert look_at([Path("/proc/self/status")]) is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_folder_that_cannot_be_read_is_counted(tmp_path: Path) -> None:
    write(tmp_path / "closed/a.folded")
    (tmp_path / "closed").chmod(0)
    searched = FolderSearch(tmp_path)
    assert not any(searched.looks())
    (tmp_path / "closed").chmod(0o700)
    assert searched.unreadable == 1


def test_a_folder_that_goes_meanwhile_is_counted(tmp_path: Path) -> None:
    write(tmp_path / "a.folded")
    write(tmp_path / "below/b.folded")
    searched = FolderSearch(tmp_path)
    looks = searched.looks()
    assert next(filter(None, looks)).paths == (tmp_path / "a.folded",)
    (tmp_path / "below").rename(tmp_path / "elsewhere")
    assert list(looks) == [None] and searched.unreadable == 1


def test_odd_names_are_names_like_others(tmp_path: Path) -> None:
    odd = ["\x1b[2Jred", "two\nlines", "\udcff", "-o", "a b"]
    for name in odd:
        write(tmp_path / name)
    assert names(tmp_path) == sorted(odd)


# What was shown together


def test_several_traces_are_one_view(tmp_path: Path) -> None:
    first = export(tmp_path / "a.sqlite", "NVIDIA A100")
    other = write(tmp_path / "b.folded")
    os.utime(first, (1e9, 1e9))
    os.utime(other, (2e9, 2e9))
    size = first.stat().st_size + other.stat().st_size
    assert look_at([first, other]) == FoundTrace(
        (first, other), "nsys export, folded stacks", size, 2e9, ("NVIDIA A100",)
    )


def test_where_one_is_missing_or_no_trace_there_is_no_view(tmp_path: Path) -> None:
    there = write(tmp_path / "a.folded")
    assert look_at([there, tmp_path / "gone"]) is None
    assert look_at([there, write(tmp_path / "words", "no\ntrace")]) is None
    assert look_at([tmp_path]) is None
    assert look_at([Path("a\0b")]) is None
    assert look_at([]) is None


# A folder that is to be read


def refused(folder: Path) -> str:
    with pytest.raises(InputError) as raised:
        load(folder)
    name, _, said = str(raised.value).partition(": ")
    assert name == str(folder)
    return said


def test_a_folder_of_traces_says_which_there_are(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"rank{number}.folded") for number in range(5)]
    for path in paths:
        os.utime(path, (1e9, 1e9))
    os.utime(paths[3], (2e9, 2e9))
    said = refused(tmp_path)
    named = ", ".join(str(paths[number]) for number in (3, 0, 1))
    assert said == f"is a folder of 5 traces, name one or several: {named}, and 2 more"


def test_a_folder_of_one_trace_says_which(tmp_path: Path) -> None:
    path = write(tmp_path / "a.folded")
    assert refused(tmp_path) == f"is a folder of 1 trace, name it: {path}"


def test_a_folder_of_nothing_says_so(tmp_path: Path) -> None:
    said = refused(tmp_path)
    assert said == "is a folder with no dump (*.fdump) and no other trace in it: name a trace file"


def test_a_folder_of_many_is_not_searched_to_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_FEW", 3)
    for number in range(9):
        write(tmp_path / f"{number}.folded")
    assert refused(tmp_path).startswith("is a folder of at least 3 traces, ")


# Real traces


def test_the_samples_are_told_as_when_they_are_opened() -> None:
    traces = [trace for trace in found(SAMPLES) if trace.format != RECORDING]
    assert traces
    for trace in traces:
        assert trace.format == detect_format(FileHead(trace.paths[0])).name


@needs_traces
def test_every_real_trace_is_found_as_what_it_is_opened_as() -> None:
    listed = {trace.paths[0]: trace for trace in found(TRACES)}
    folders = ("nsys/*.sqlite", "kineto/*.json.gz", "proton/*", "ncu/*.csv")
    real = [path for pattern in folders for path in TRACES.glob(pattern)]
    assert real
    for path in real:
        assert listed[path].format == detect_format(FileHead(path)).name
