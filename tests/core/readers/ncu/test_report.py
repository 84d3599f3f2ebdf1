"""Reports of Nsight Compute are read by ncu; here a shell script stands in for it."""

from __future__ import annotations

import shlex
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from flame.core.errors import CancelledError, InputError
from flame.core.loading.many import load
from flame.core.options import LoadOptions, silent
from flame.core.readers.ncu.report import STAGE, read_report
from flame.core.readers.signs.ncu import MAGIC, looks_like_report
from tests.support.waiting import PATIENCE
from tests.support.writers.ncufile import BASE, Line, Row, cuda_page, sass_page

Ncu = Callable[[str], None]

WAIT = "stall_wait"
CODE = [Row("LDG.E R2, [R4]", {WAIT: 5}), Row("BRA 0x7fd524fb8900", {WAIT: 1}), Row("EXIT")]
LINES = [Line(7, "x = y[i];", [(1, CODE[1]), (2, CODE[2])])]
SASS = sass_page("_Z4copyi", CODE)
CUDA = cuda_page("copy", "/a/copy.cu", LINES, [WAIT])
PRINT = 'echo run >>"$FOLDER/runs"; printf "%s\\n" "$@" >"$FOLDER/arguments.$6"; cat "$FOLDER/$6"\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder and a PATH of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("FOLDER", str(tmp_path))
    (tmp_path / "bin").mkdir()
    for name in ("sh", "cat", "head", "sleep"):
        found = shutil.which(name)
        assert found
        (tmp_path / "bin" / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


@pytest.fixture
def ncu(folder: Path) -> Ncu:
    """Puts a script called ncu on PATH, which may print the files ``sass`` and ``cuda,sass``."""
    (folder / "sass").write_text(f"==PROF== Loading\n{SASS}")
    (folder / "cuda,sass").write_text(CUDA)

    def install(script: str) -> None:
        path = folder / "bin" / "ncu"
        path.write_text(f"#!{folder}/bin/sh\n{script}")
        path.chmod(0o755)

    return install


@pytest.fixture
def report(folder: Path) -> Path:
    path = folder / "run.ncu-rep"
    path.write_bytes(MAGIC + b"\x01\x02")
    return path


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text().splitlines())


@pytest.mark.parametrize(
    ("name", "head", "is_report"),
    [
        ("run.ncu-rep", MAGIC + b"1", True),
        ("run", MAGIC + b"1", True),
        ("RUN.NCU-REP", b"a report of a version to come", True),
        ("old.nsight-cuprof-report", b"of 2019", True),
        ("run.ncu-rep", b"", False),
        ("run.csv", b"anything else", False),
    ],
)
def test_reports_are_known_by_content_else_by_name(name: str, head: bytes, is_report: bool) -> None:
    assert looks_like_report(Path(name), head) is is_report


def test_a_report_is_read_with_its_lines(ncu: Ncu, report: Path) -> None:
    ncu(PRINT)
    (result,) = read_report(report, silent).results
    code = result.samples.code
    assert (result.name, result.address, result.samples.total) == ("_Z4copyi", BASE, 6)
    assert code.text == ("LDG.E R2, [R4]", "BRA 0x0", "EXIT")
    assert code.line.tolist() == [0, 7, 7]
    assert code.file.tolist() == [-1, 0, 0]
    assert code.files == ("/a/copy.cu",)
    assert code.source == {(0, 7): "x = y[i];"}


def test_without_the_cache_nothing_is_kept(ncu: Ncu, report: Path, folder: Path) -> None:
    ncu(PRINT)
    for number in (1, 2):
        warnings = load(report, LoadOptions(cache=False)).warnings
        assert not any("not kept" in warning for warning in warnings)
        assert runs(folder) == 2 * number
    assert not (folder / "cache").exists()


@pytest.mark.parametrize(
    "other",
    [
        "",
        "==ERROR== no such view\n",
        CUDA.replace("EXIT", "RET"),
        cuda_page("copy", "/a/copy.cu", LINES, [WAIT], BASE + 8),
        cuda_page("copy", "/a/copy.cu", LINES, [WAIT], BASE + 4096),
    ],
)
def test_lines_of_anything_else_are_not_taken(other: str, ncu: Ncu, report: Path) -> None:
    ncu(PRINT)
    (report.parent / "cuda,sass").write_text(other)
    (result,) = read_report(report, silent).results
    assert result.samples.total == 6
    assert result.samples.code.line.tolist() == [0, 0, 0]


def test_ncu_is_asked_as_its_manual_says(ncu: Ncu, report: Path, folder: Path) -> None:
    ncu(PRINT)
    read_report(report, silent)
    for view in ("sass", "cuda,sass"):
        words = (folder / f"arguments.{view}").read_text().split()
        assert words[:5] == ["--import", str(report), "--page", "source", "--print-source"]
        assert words[5:] == [view, "--csv", "--print-kernel-base", "mangled"]


def test_pages_are_kept_for_this_content(ncu: Ncu, report: Path, folder: Path) -> None:
    ncu(PRINT)
    read_report(report, silent)
    (folder / "bin" / "ncu").unlink()
    assert read_report(report, silent).results[0].samples.total == 6
    assert runs(folder) == 2
    ncu(PRINT)
    report.write_bytes(MAGIC + b"profiled again")
    read_report(report, silent)
    assert runs(folder) == 4
    kept = Counter(path.name.split(".", 2)[2] for path in (folder / "cache" / "flame").iterdir())
    assert kept == {"lines.csv": 2, "sass.csv": 2}


@pytest.mark.parametrize("name", ["run.ncu-rep", "it's two.ncu-rep", "trace"])
def test_without_ncu_the_command_to_run_is_told(name: str, report: Path, folder: Path) -> None:
    path = report.rename(folder / name)
    for trace, beside in ((path, ()), (folder / "no.sqlite", (str(path),))):
        with pytest.raises(InputError) as caught:
            load(trace, LoadOptions(ncu=beside))
        told = str(caught.value)
        assert told.startswith(f"{path}: a report of Nsight Compute, and ncu, which reads it, ")
        words = shlex.split(told.partition(" run: ")[2])
        assert words[:3] == ["ncu", "--import", str(path)]
        assert words[-2] == ">"
        assert words[-1] != str(path)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo '==ERROR== An error occurred: too old'; exit 1", "(exit 1): ==ERROR== An error"),
        ("echo 'cannot open' >&2; exit 9", "(exit 9): cannot open"),
        ("exit 1", "does not say why"),
        ("exit 0", "wrote no export"),
        ("echo 'no kernels were profiled'", "not the source page"),
        ("echo 'cannot go on'; head -c 300000000 /dev/zero; exit 3", "(exit 3): cannot go on"),
    ],
)
def test_what_ncu_said_is_told(script: str, said: str, ncu: Ncu, report: Path) -> None:
    ncu(script)
    with pytest.raises(InputError) as caught:
        load(report)
    assert str(caught.value).startswith(f"{report}: ")
    assert said in str(caught.value)
    assert "cache" not in str(caught.value)


def test_what_could_not_be_read_is_not_kept(ncu: Ncu, report: Path) -> None:
    ncu("echo 'no kernels were profiled'")
    with pytest.raises(InputError):
        load(report)
    ncu(PRINT)
    assert len(read_report(report, silent).results) > 0


def test_reading_reports_progress_and_can_be_stopped(ncu: Ncu, report: Path, folder: Path) -> None:
    ncu('echo here >"$FOLDER/began"; sleep 600')

    def stop_soon(stage: str, done: int, expected: int) -> None:
        assert stage == STAGE
        if (folder / "began").exists():
            raise CancelledError("stopped")

    began = time.monotonic()
    with pytest.raises(CancelledError):
        read_report(report, stop_soon)
    assert time.monotonic() - began < PATIENCE
    assert not any(path.is_file() for path in (folder / "cache").rglob("*"))
