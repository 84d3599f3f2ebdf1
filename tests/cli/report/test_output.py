"""Where `flame report` writes to: files that are there whole or not at all, and never replaced."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Flame, interrupt, spawn
from tests.support.waiting import wait_until
from tests.support.writers.nsysfile import NsysFile

FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Two kernels with hostile names."""
    path = tmp_path / "small.sqlite"
    with NsysFile(path) as file:
        for number, name in enumerate(("=cmd|'/C calc'!A0", "<script>alert(1)</script>"), 1):
            file.api("cudaLaunchKernel_v7000", 100 * number, 100 * number + 10, corr=number)
            file.kernel(name, 100 * number + 20, 100 * number + 60, corr=number)
    return path


@pytest.mark.parametrize(
    ("words", "begin"),
    [
        (("-o", "out"), "What to look at first\n"),
        (("--json", "-o", "out"), '{\n  "flame_report": 1,'),
        (("--md", "-o", "out"), "### What to look at first\n"),
        (("--html", "out"), "<!DOCTYPE html>\n"),
    ],
)
def test_a_report_is_written_to_a_file(
    flame: Flame, trace: Path, words: tuple[str, ...], begin: str
) -> None:
    done = flame("report", trace, *words)
    assert (done.code, done.out, done.err) == (0, "", "flame: wrote out\n")
    assert Path("out").read_text("utf-8").startswith(begin)
    Path("out").write_text("kept")
    done = flame("report", trace, *words)
    why = done.complaint()
    assert (done.code, why) == (2, "out: is there already; --force replaces it")
    assert Path("out").read_text() == "kept"
    early = flame("report", "none.sqlite", *words)
    assert early.complaint() == why, "before anything is read"
    assert flame("report", trace, *words, "--force").code == 0
    assert Path("out").read_text("utf-8").startswith(begin)
    assert sorted(path.name for path in Path().iterdir()) == ["out", trace.name]


@pytest.mark.deep
def test_a_file_holds_what_would_be_printed(flame: Flame, trace: Path) -> None:
    for words in (("--json",), ("--md",), ()):
        printed = flame("report", trace, *words, "-o", "-").out
        assert flame("report", trace, *words).out == printed
        flame("report", trace, *words, "-o", "out", "--force")
        if words:
            assert Path("out").read_text("utf-8") == printed


def test_a_page_can_go_to_standard_output(flame: Flame, trace: Path) -> None:
    done = flame("report", trace, "--html", "-")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("<!DOCTYPE html>")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in done.out
    assert done.out.count("<script") == 1


def test_the_picture_has_the_names_of_the_app(flame: Flame, tmp_path: Path) -> None:
    path = tmp_path / "steps.sqlite"
    full = (
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >()"
    )
    with NsysFile(path) as file:
        for at in range(0, 2_000, 100):
            file.nvtx(f"batch {at}", at, at + 90)
            file.api("cudaLaunchKernel_v7000", at + 1, at + 2, corr=at + 1)
            file.kernel(
                "vectorized_elementwise_kernel", at + 3, at + 53, corr=at + 1, demangled=full
            )
    usual = flame("report", path, "--html", "-").out
    assert "<title>batch *\n1.00 µs, 100.0 %, 20 activities</title>" in usual
    assert ">vectorized_elementwise&lt;CUDAFunctor_add&gt;</text>" in usual
    assert "* stands for numbers" in usual
    exact = flame(
        *("report", path, "--html", "-", "--no-fold-numbers", "--kernel-names", "base")
    ).out
    assert "<title>batch 100\n50 ns, 5.0 %, 1 activity</title>" in exact
    assert "<title>vectorized_elementwise_kernel\n" in exact and "* stands" not in exact


@pytest.mark.deep
def test_a_condition_is_told_beside_a_file(flame: Flame, trace: Path) -> None:
    for words in (("-o", "a"), ("--json", "-o", "b"), ("--html", "c"), ("--csv", "d")):
        done = flame("report", trace, *words, "--fail-on", "kernels > 1")
        assert done.code == 5
        [line] = done.lines
        assert json.loads(line)["result"] is True


def test_what_is_read_is_never_written_over(flame: Flame, trace: Path) -> None:
    Path("phases.json").write_text('{"a": ["b"]}')
    for name, words in ((trace.name, ()), ("phases.json", ("--phases", "phases.json"))):
        before = Path(name).read_bytes()
        for option in ("-o", "--html"):
            done = flame("report", trace, *words, option, f"./{name}", "--force")
            assert (done.code, done.complaint()) == (2, f"{option} ./{name}: is what is read")
        assert Path(name).read_bytes() == before


def test_what_appears_meanwhile_is_kept(
    flame: Flame, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flame.core.report.report import Report

    def sections(report: Report, names: object) -> list[object]:
        Path("out").write_text("kept")
        return []

    monkeypatch.setattr(Report, "sections", sections)
    for words in (("-o", "out"), ("--html", "out")):
        Path("out").unlink(missing_ok=True)
        done = flame("report", trace, *words)
        assert (done.code, done.complaint()) == (2, "out: is there already; --force replaces it")
        assert Path("out").read_text() == "kept"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("-o", "x", "--csv", "y"), "-o is for text, --json and --md"),
        (("-o", "x", "--html", "y"), "-o is for text, --json and --md"),
        (("--html", "x", "--json"), "argument --json: not allowed with argument --html"),
        (("--rows", "0"), "--rows 0: is no number of rows"),
        (("--rows", "-1"), "--rows -1: is no number of rows"),
        (("--section", "nothing"), "--section nothing: is none of findings, "),
        (("--section", "", "--json"), "--section : is none of findings, "),
        (("--phases", ""), "--phases: no file given"),
        (("--html", "nowhere/x"), "nowhere/x: cannot be written: there is no folder nowhere"),
        (("-o", "."), ".: is there already; --force replaces it"),
        (("-o", ".", "--force"), ".: cannot be written: Is a directory"),
        (("--csv", "small.sqlite"), "small.sqlite: cannot be written: File exists"),
    ],
)
def test_mistakes_are_said_in_a_line(
    flame: Flame, trace: Path, words: tuple[str, ...], why: str
) -> None:
    done = flame("report", trace, *words)
    assert done.code == (3 if "cannot be written" in why else 2)
    assert done.complaint().startswith(why)


def test_sections_and_patterns_are_listed_without_a_trace(flame: Flame) -> None:
    for paths in ((), ("none.sqlite",)):
        done = flame("report", *paths, "--section", "help")
        assert (done.code, done.err) == (0, "")
        assert [line.split()[0] for line in done.lines][:2] == ["findings", "summary"]
        assert all(len(line.split()) > 1 for line in done.lines)
        assert "\ncommunication\n" in flame("report", *paths, "--phases", "show").out
    done = flame("report", "--json")
    assert (done.code, done.complaint()) == (
        2,
        "name a trace: flame report PATH (see flame report --help)",
    )


def test_rows_limit_the_tables_of_json(flame: Flame, trace: Path) -> None:
    words = ("report", trace, "--section", "kernels", "--json")
    all_of_them = json.loads(flame(*words).out)["kernels"]
    assert (len(all_of_them["rows"]), "more" in all_of_them) == (2, False)
    first = json.loads(flame(*words, "--rows", "1").out)["kernels"]
    assert (len(first["rows"]), first["more"]) == (1, {"rows": 1})


# Disks and pipes


@FULL
def test_a_full_disk_is_told(flame: Flame, trace: Path) -> None:
    for words in (("--html", "/dev/full"), ("--json", "-o", "/dev/full")):
        done = flame("report", trace, *words)
        assert (done.code, done.complaint()) == (
            3,
            "/dev/full: cannot be written: No space left on device",
        )


@pytest.mark.parametrize("option", ["-o", "--html", "--csv"])
def test_a_disk_that_fills_up_leaves_nothing_half_written(
    flame: Flame, trace: Path, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []

    def full(descriptor: int) -> None:
        written.append(descriptor)
        if option != "--csv" or len(written) > 6:  # of the fourth table: folders count, too
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    done = flame("report", trace, option, "out")
    assert (done.code, len(written)) == (3, 7 if option == "--csv" else 1)
    assert done.complaint().endswith("cannot be written: No space left on device")
    left = [path for path in Path().rglob("*") if path.is_file()]
    assert left == [Path(trace.name)]


@pytest.mark.deep
def test_a_file_that_becomes_too_large_is_not_there(trace: Path) -> None:
    limited = "import resource, signal; resource.setrlimit(resource.RLIMIT_FSIZE, (4096,) * 2)"
    code = f"{limited}; import sys; from flame.cli.main import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "report", str(trace), "--html", "out.html"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "flame: out.html: cannot be written: File too large\n"
    assert [path.name for path in Path().iterdir()] == [trace.name]


@pytest.mark.deep
@pytest.mark.parametrize("words", ["--json", "--md", "--html -", "--fail-on idle>=0%"])
def test_a_closed_pipe_is_quiet(trace: Path, words: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = spawn(
            "report",
            trace,
            *words.split(),
            capture_output=False,
            stdout=writer,
            stderr=subprocess.PIPE,
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.deep
def test_an_interrupt_ends_a_report_and_leaves_nothing(trace: Path) -> None:
    """While it is about to write: the sections are there, the file is not."""
    code = (
        "import sys, time\n"
        "from flame.cli.main import main\n"
        "from flame.reporting import html\n"
        "def wait(*words, **more):\n"
        "    open('begun', 'x').close()\n"
        "    while True:\n"
        "        time.sleep(0.01)\n"  # a signal just before a long call is seen after it
        "html.as_html = wait\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    command = [sys.executable, "-c", code, "report", str(trace), "--html", "out.html"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_until(Path("begun").exists)
        assert interrupt(process) == (130, b"", b"")
    assert not Path("out.html").exists()
