"""Reports are converted by nsys, once; here a shell script stands in for it."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from flame.core.errors import CancelledError, InputError
from flame.core.loading.many import load
from flame.core.options import LoadOptions, Progress, silent
from flame.core.readers.nsys.report import STAGE, read_by_export
from flame.core.readers.shared import converter
from flame.core.readers.signs.nsys import MAGIC, looks_like_report
from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE, wait_until
from tests.support.writers.nsysfile import MARK, NsysFile

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


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder and a PATH of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("FOLDER", str(tmp_path))
    for name in ("sh", "cp", "sleep"):
        found = shutil.which(name)
        assert found
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


@pytest.fixture
def nsys(folder: Path) -> Nsys:
    """Puts a script called nsys on PATH."""

    def install(script: str) -> None:
        path = folder / "bin" / "nsys"
        path.write_text(f"#!{folder}/bin/sh\n{script}")
        path.chmod(0o755)

    return install


@pytest.fixture
def report(folder: Path) -> Path:
    """A report, and the export that the stand-in makes of any report."""
    with NsysFile(folder / "made.sqlite") as file:
        file.kernel("gemm", 0, 100)
    path = folder / "run.nsys-rep"
    path.write_bytes(HEAD)
    return path


def export_report(path: Path, progress: Progress) -> Path:
    """Where the export of that report is."""
    return read_by_export(path, progress, lambda export, _: export).value


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text().splitlines())


def test_without_the_cache_a_report_is_converted_anew_and_nothing_is_kept(
    nsys: Nsys, report: Path, folder: Path
) -> None:
    nsys(COPY)
    for number in (1, 2):
        profile = load(report, LoadOptions(cache=False))
        assert profile.gpu_time == 100
        assert not any("not kept" in warning for warning in profile.warnings)
        assert runs(folder) == number
    assert not (folder / "cache").exists()
    assert profile.launches is not None, "they were read with the rest"
    assert runs(folder) == 2


def left_in_cache(folder: Path) -> list[str]:
    return [path.suffix for path in (folder / "cache").rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("name", "head", "is_report"),
    [
        ("run.nsys-rep", HEAD, True),
        ("run.qdrep", HEAD, True),
        ("run.sqlite", HEAD, True),
        ("run", HEAD, True),
        ("RUN.NSYS-REP", b"a report of a version to come", True),
        ("run.nsys-rep", b"", False),
        ("run.sqlite", b"anything else", False),
    ],
)
def test_reports_are_known_by_content_else_by_name(name: str, head: bytes, is_report: bool) -> None:
    assert looks_like_report(Path(name), head) is is_report


def test_a_report_opens_like_its_export(nsys: Nsys, report: Path) -> None:
    nsys(COPY)
    assert load(report).gpu_time == 100


def test_a_report_opens_under_any_name(nsys: Nsys, report: Path) -> None:
    nsys(COPY)
    assert load(report.rename(report.with_name("trace.sqlite"))).gpu_time == 100


def test_nsys_is_asked_as_its_manual_says(nsys: Nsys, report: Path, folder: Path) -> None:
    nsys(COPY)
    export_report(report, silent)
    command, kind, force, output, path = (folder / "arguments").read_text().splitlines()
    assert (command, kind, force) == ("export", "--type=sqlite", "--force-overwrite=true")
    assert output.endswith(".sqlite")
    assert path == str(report)


def test_a_conversion_is_kept(nsys: Nsys, report: Path, folder: Path) -> None:
    nsys(COPY)
    made = export_report(report, silent)
    assert export_report(report, silent) == made
    assert runs(folder) == 1
    assert made.is_relative_to(folder / "cache" / "flame")


def test_a_kept_conversion_needs_no_nsys(nsys: Nsys, report: Path, folder: Path) -> None:
    nsys(COPY)
    made = export_report(report, silent)
    (folder / "bin" / "nsys").unlink()
    assert export_report(report, silent) == made


def test_a_new_recording_is_converted(nsys: Nsys, report: Path, folder: Path) -> None:
    nsys(COPY)
    made = export_report(report, silent)
    report.write_bytes(HEAD + b"recorded again")
    assert export_report(report, silent) != made
    assert runs(folder) == 2


def test_another_report_of_the_same_size_and_time_is_another(
    nsys: Nsys, report: Path, folder: Path
) -> None:
    nsys(COPY)
    known = report.stat()
    first = export_report(report, silent)
    data = bytearray(report.read_bytes())
    data[-1] ^= 1
    report.write_bytes(data)
    os.utime(report, ns=(known.st_atime_ns, known.st_mtime_ns))
    assert export_report(report, silent) != first
    assert runs(folder) == 2


def test_a_copy_and_a_new_name_are_the_same_report(nsys: Nsys, report: Path, folder: Path) -> None:
    nsys(COPY)
    made = export_report(report, silent)
    copied = shutil.copy(report, folder / "copy.nsys-rep")
    assert export_report(Path(copied), silent) == made
    assert export_report(report.rename(folder / "new.nsys-rep"), silent) == made
    assert runs(folder) == 1


def test_another_nsys_converts_anew(nsys: Nsys, report: Path, folder: Path) -> None:
    nsys(COPY)
    export_report(report, silent)
    nsys(COPY + "# a newer one\n")
    export_report(report, silent)
    export_report(report, silent)
    assert runs(folder) == 2


# What became of a conversion since


def damage(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    if how == "cut":
        del data[len(data) // 2 :]
    elif how == "changed":
        data[-5] ^= 0xFF
    else:
        data.clear()
    path.write_bytes(data)


NOTE = "run.nsys-rep: the conversion kept in the cache was damaged, and was made again"


@pytest.mark.parametrize("how", ["cut", "changed", "empty"])
def test_a_damaged_conversion_is_made_again_once(
    how: str, nsys: Nsys, report: Path, folder: Path
) -> None:
    nsys(COPY)
    damage(export_report(report, silent), how)
    again = load(report)
    assert again.gpu_time == 100
    assert NOTE in again.warnings
    assert NOTE not in load(report).warnings
    assert runs(folder) == 2


def test_a_conversion_that_no_reader_takes_is_not_kept(
    nsys: Nsys, report: Path, folder: Path
) -> None:
    nsys(EXPORT + 'echo nonsense >"$output"\n')
    with pytest.raises(InputError) as caught:
        load(report)
    assert str(caught.value).startswith(f"{report}: ")
    assert "cache" not in str(caught.value)
    assert left_in_cache(folder) == []
    nsys(COPY)
    assert load(report).gpu_time == 100


def test_a_sound_conversion_that_no_reader_takes_is_made_again(
    nsys: Nsys, report: Path, folder: Path
) -> None:
    """As another version of flame may have kept it."""
    nsys(COPY)
    (folder / "made.sqlite").rename(folder / "good.sqlite")
    (folder / "made.sqlite").write_text("nonsense")
    export_report(report, silent)
    (folder / "good.sqlite").rename(folder / "made.sqlite")
    again = load(report)
    assert again.gpu_time == 100
    assert NOTE in again.warnings


def test_what_was_launched_is_known_after_the_conversion_has_gone(
    nsys: Nsys, report: Path, folder: Path
) -> None:
    nsys(COPY)
    profile = load(report)
    export_report(report, silent).unlink()
    assert profile.launches is not None and len(profile.launches) == 1


def test_marks_and_failed_calls_are_read_with_and_without_a_cache(
    nsys: Nsys, report: Path, folder: Path
) -> None:
    nsys(COPY)
    (folder / "made.sqlite").unlink()
    with NsysFile(folder / "made.sqlite") as made:
        made.kernel("gemm", 0, 100)
        made.api("cudaMalloc_v3020", 0, 10)
        made.db.execute("UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET returnValue = 2")
        made.nvtx("epoch", 5, None, type=MARK)
    for prepare in (None, open_to_others):
        if prepare:
            shutil.rmtree(folder / "cache")
            prepare(folder / "cache" / "flame")
        profile = load(report)
        assert profile.events is not None and profile.failures is not None
        assert [name.name for name in profile.events.names] == ["epoch"]
        assert profile.failures.value.tolist() == [2]


def test_the_launches_of_a_changed_report_are_not_taken(
    nsys: Nsys, report: Path, folder: Path
) -> None:
    nsys(COPY)
    profile = load(report)
    report.write_bytes(HEAD + b"recorded again")
    (folder / "made.sqlite").unlink()
    with NsysFile(folder / "made.sqlite") as made:
        made.kernel("gemm", 7, 100)
    with pytest.raises(InputError, match="has changed since it was opened"):
        _ = profile.launches


def with_os_call(folder: Path) -> None:
    """Have the conversion make a trace with a call of the operating system."""
    (folder / "made.sqlite").unlink()
    with NsysFile(folder / "made.sqlite") as made:
        made.kernel("gemm", 0, 100)
        made.os_call("read", 0, 7)


def test_side_tables_are_read_after_the_conversion_has_gone(
    nsys: Nsys, report: Path, folder: Path
) -> None:
    with_os_call(folder)
    nsys(COPY)
    profile = load(report)
    export_report(report, silent).unlink()
    assert profile.os_calls is not None and profile.os_calls.end.tolist() == [7]


def test_the_side_tables_of_a_changed_report_are_not_taken(
    nsys: Nsys, report: Path, folder: Path
) -> None:
    with_os_call(folder)
    nsys(COPY)
    profile = load(report)
    report.write_bytes(HEAD + b"recorded again")
    with pytest.raises(InputError, match="has changed since it was opened"):
        _ = profile.os_calls


# Without a cache to be trusted


def open_to_others(cache: Path) -> None:
    cache.mkdir(parents=True)
    cache.chmod(0o777)


def link(cache: Path) -> None:
    cache.parent.mkdir()
    (cache.parent / "elsewhere").mkdir(0o700)
    cache.symlink_to("elsewhere")


def file(cache: Path) -> None:
    cache.parent.mkdir()
    cache.write_text("in the way")


def parent_of_all(cache: Path) -> None:
    cache.parent.mkdir()
    cache.parent.chmod(0o777)


UNTRUSTED = {
    "others may write to": open_to_others,
    "a link to one": link,
    "File exists": file,
    "everybody may write to": parent_of_all,
}


@pytest.mark.parametrize("reason", UNTRUSTED)
def test_without_a_cache_it_is_converted_and_said_once(
    reason: str, nsys: Nsys, report: Path, folder: Path
) -> None:
    nsys(COPY)
    UNTRUSTED[reason](folder / "cache" / "flame")
    profile = load(report)
    assert profile.gpu_time == 100
    assert profile.launches is not None and len(profile.launches) == 1
    [note] = [text for text in profile.warnings if "is not kept for the next time" in text]
    assert reason in note
    assert left_in_cache(folder) in ([], [""])
    assert list(Path(tempfile.gettempdir()).glob(".flame-*")) == []


# Several at once, and killed ones


LOAD = "import sys; from flame.core.loading.many import load; print(load(sys.argv[1]).gpu_time)"


def loading(report: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", LOAD, str(report)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def test_two_at_once_convert_once(nsys: Nsys, report: Path, folder: Path) -> None:
    wait = 'echo here >"$FOLDER/began"; until [ -e "$FOLDER/go" ]; do sleep 0.05; done\n'
    nsys(COPY + wait)
    both = [loading(report), loading(report)]
    wait_until((folder / "began").exists)
    wait_until(lambda: has_open(both[0], ".lock") and has_open(both[1], ".lock"))
    (folder / "go").touch()
    assert [process.communicate(timeout=PATIENCE)[0] for process in both] == ["100\n", "100\n"]
    assert runs(folder) == 1
    assert left_in_cache(folder) == [".sqlite"]


def has_open(process: subprocess.Popen[str], suffix: str) -> bool:
    files = Path(f"/proc/{process.pid}/fd").iterdir()
    return any(os.path.realpath(file).endswith(suffix) for file in files)


def test_what_a_killed_one_left_goes_when_it_is_old(nsys: Nsys, report: Path, folder: Path) -> None:
    nsys(EXPORT + 'echo half >"$output"; echo $$ >"$FOLDER/child"; sleep 600')
    process = loading(report)
    wait_until(lambda: (folder / "child").exists() and (folder / "child").read_text().strip())
    process.kill()
    process.communicate(timeout=PATIENCE)
    os.killpg(int((folder / "child").read_text()), signal.SIGKILL)
    cache = folder / "cache" / "flame"
    [workspace] = cache.glob("*.tmp")
    nsys(COPY)
    assert load(report).gpu_time == 100
    assert workspace.is_dir(), "it may be somebody's who has just begun"
    for path in (*workspace.iterdir(), workspace):
        os.utime(path, (0, 0))
    report.write_bytes(HEAD + b"another")
    load(report)
    assert {path.suffix for path in cache.iterdir()} == {".sqlite"}


def test_a_conversion_is_for_its_user_alone(nsys: Nsys, report: Path) -> None:
    nsys(COPY)
    assert export_report(report, silent).parent.stat().st_mode & 0o777 == 0o700


def test_nothing_is_written_beside_the_report(nsys: Nsys, report: Path, folder: Path) -> None:
    place = folder / "place"
    place.mkdir()
    nsys(COPY)
    export_report(report.rename(place / report.name), silent)
    assert [path.name for path in place.iterdir()] == [report.name]


# Reports that lead nsys astray


def test_what_takes_for_ever_is_given_up(
    nsys: Nsys, report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(converter, "_SECONDS", 0.0)
    monkeypatch.setattr(converter, "_SECONDS_PER_BYTE", 0.0)
    nsys("sleep 600")
    with pytest.raises(InputError, match=r"run.nsys-rep: nsys does not end within 0 s; try: nsys "):
        export_report(report, silent)


def test_what_writes_without_end_is_given_up(
    nsys: Nsys, report: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(converter, "_SIZE", 1 << 20)
    monkeypatch.setattr(converter, "_SIZE_PER_BYTE", 1)
    nsys(EXPORT + 'while :; do printf "%99999s" x; done >"$output"')
    with pytest.raises(InputError, match=r"run.nsys-rep: nsys writes more than 1.0\d MB; try: "):
        export_report(report, silent)
    assert left_in_cache(folder) == []


def test_a_tenth_of_what_is_free_stays_free(
    nsys: Nsys, report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def usage(_: Path) -> SimpleNamespace:
        return SimpleNamespace(free=100_000)

    monkeypatch.setattr(converter, "disk_usage", usage)
    nsys(EXPORT + 'while :; do printf "%99999s" x; done >"$output"')
    with pytest.raises(InputError, match="nsys writes more than 90"):
        export_report(report, silent)


@pytest.mark.parametrize(
    "name",
    [
        "two words.nsys-rep",
        'it\'s "quoted".qdrep',
        "$HOME;true.nsys-rep",
        "-o.nsys-rep",
        "层.qdrep",
    ],
)
def test_any_file_name(
    name: str, nsys: Nsys, report: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nsys(COPY)
    monkeypatch.chdir(folder)
    report.rename(name)
    assert load(name).gpu_time == 100
    assert (folder / "arguments").read_text().splitlines()[-1] == str(folder / name)


@pytest.mark.parametrize("name", ["run.nsys-rep", "it's two.qdrep", "trace.sqlite"])
def test_without_nsys_the_command_to_run_is_told(name: str, report: Path, folder: Path) -> None:
    path = report.rename(folder / name)
    with pytest.raises(InputError) as caught:
        load(path)
    told = str(caught.value)
    assert told.startswith(f"{path}: ")
    command = shlex.split(told.partition(" run: ")[2])
    assert command[:5] == ["nsys", "export", "--type", "sqlite", "-o"]
    assert command[5].endswith(".sqlite")
    assert command[5] != str(path)
    assert command[6] == str(path)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo 'Failed to open: no space left' >&2; echo bye >&2; exit 1", "Failed to open"),
        ("echo Processing; echo 'last words'; exit 3", "(exit 3): last words"),
        ("printf '[1/2] 10%%\\r[1/2] 20%%\\nERROR: bad\\n'; exit 1", "(exit 1): ERROR: bad"),
        ("exit 1", "does not say why"),
        ("exit 0", "wrote no export"),
        ("kill -9 $$", "exit -9"),
        (EXPORT + 'echo half >"$output"; echo error: stopped; exit 1', "error: stopped"),
    ],
)
def test_what_nsys_said_is_told(
    script: str, said: str, nsys: Nsys, report: Path, folder: Path
) -> None:
    nsys(script)
    with pytest.raises(InputError) as caught:
        export_report(report, silent)
    assert str(caught.value).startswith(f"{report}: nsys ")
    assert said in str(caught.value)
    assert left_in_cache(folder) == []


def test_nsys_that_cannot_run(nsys: Nsys, report: Path, folder: Path) -> None:
    nsys("")
    (folder / "bin" / "nsys").write_text("#!/no/such/interpreter\n")
    with pytest.raises(InputError, match="cannot be converted"):
        export_report(report, silent)


def test_a_relative_cache_is_ignored(
    nsys: Nsys, report: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nsys(COPY)
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    monkeypatch.setenv("HOME", str(folder / "home"))
    assert export_report(report, silent).parent == folder / "home" / ".cache" / "flame"


def test_conversion_reports_progress_and_can_be_stopped(
    nsys: Nsys, report: Path, folder: Path
) -> None:
    """All of it stops, also what nsys itself has started."""
    nsys(EXPORT + 'sleep 600 & echo $! >"$FOLDER/child"; wait')
    stages = []

    def stop_soon(stage: str, done: int, expected: int) -> None:
        stages.append(stage)
        if (folder / "child").exists() and (folder / "child").read_text().strip():
            raise CancelledError("stopped")

    began = time.monotonic()
    with pytest.raises(CancelledError):
        export_report(report, stop_soon)
    assert time.monotonic() - began < PATIENCE
    assert set(stages) == {STAGE}
    assert left_in_cache(folder) == []
    wait_until(lambda: is_gone(int((folder / "child").read_text())))


def is_gone(pid: int) -> bool:
    """Whether the process has ended; a zombie has ended."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_on_the_command_line(nsys: Nsys, report: Path) -> None:
    root = str(ROOT)
    env = {**os.environ, "PYTHONPATH": root}
    command = [sys.executable, "-m", "flame", "info", str(report)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=env, timeout=PATIENCE, check=False
    )
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "nsys export --type sqlite -o" in done.stderr
    nsys(COPY)
    done = subprocess.run(
        command, capture_output=True, text=True, env=env, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(str(report))
