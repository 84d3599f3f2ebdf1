"""The examples of the documentation run: command lines on small traces called as they are there."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

from flame.cli.main import main
from tests.support.generated.worked import product
from tests.support.paths import ROOT
from tests.support.writers.fdumpfile import DumpFile
from tests.support.writers.kinetofile import KinetoFile
from tests.support.writers.ncufile import Row, sass_page
from tests.support.writers.nsysfile import HTOD, NsysFile
from tests.support.writers.snapshotfile import SnapshotFile
from tests.system.test_docs import PAGES, command_lines, fenced, name_of, text_of

pytestmark = pytest.mark.deep

NOT_RUN = {
    r"^flame (attach|record)\b": "needs a program that records, and most of them a GPU",
    r"^flame mcp ": "answers until its client goes: tests/mcp",
    r" --web\b": "serves until it is ended: tests/web",
    r" (https|s3|gs)://|ssh host": "needs a server: tests/system/servers",
    r" --dask ": "needs a cluster: tests/engines",
    r"\.ncu-rep": "needs ncu",
    r"view --state$": "needs what the app has copied",
    r"^flame$": "is a list in the app: tests/tui/picker",
    r"flamegraph\.pl": "needs flamegraph.pl: tests/system/formats/test_flamegraph_scripts.py",
}
"""Why command lines are not run here, by an expression of theirs."""

OTHER_CODES = {
    r"^flame doctor": {0, 1},
    r" --fail-on ": {0, 5, 6},
    r"^flame view (run|log)/$": {3},
}
"""Exit codes, where they are not 0 alone: a gate holds or not, a folder is a list in the app."""


def shell_lines() -> list[tuple[str, str]]:
    """Every command line of the documentation once, with its page, without its comment."""
    found: dict[str, str] = {}
    for page, line in [*command_lines(), *piped_lines()]:
        command = re.split(r"\s+#", line)[0].strip()
        found.setdefault(command, page)
    return [(page, command) for command, page in found.items()]


def piped_lines() -> Iterator[tuple[str, str]]:
    """Command lines that begin with another program."""
    for path in PAGES:
        for line in fenced(text_of(path)):
            if re.match(r"\w[^|]*\| flame \w", line) and not line.startswith("flame "):
                yield name_of(path), line


def is_run(line: str) -> bool:
    return not any(re.search(pattern, line) for pattern in NOT_RUN)


RUN = [(page, line) for page, line in shell_lines() if is_run(line)]


ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
GEMM = "gemm(float *)"


def write_run(path: Path, slower: int = 0) -> None:
    """Write nine steps of a trace with all that the examples name."""
    with NsysFile(path) as file:
        for step in range(9):
            begin = 1_000_000_000 * step
            names = f"step {step}", f"batch {step}", "forward", f"decode {step}"
            for at, name in enumerate(names):
                file.nvtx(name, begin + at, begin + 900_000 - 100_000 * at)
            file.nvtx("attention", begin + 10, begin + 500_000)
            file.api("cudaLaunchKernel_v7000", begin + 100, begin + 200, corr=3 * step + 1)
            file.kernel("gemm", begin + 300, begin + 200_300 + slower, 3 * step + 1, demangled=GEMM)
            file.api("cudaMemcpyAsync_v3020", begin + 600, begin + 700, corr=3 * step + 2)
            file.memcpy(HTOD, begin + 250_000 + slower, begin + 260_000 + slower, 3 * step + 2)
            file.api("cudaLaunchKernel_v7000", begin + 800, begin + 900, corr=3 * step + 3)
            file.kernel("ncclDevKernel", begin + 300_000, begin + 390_000, corr=3 * step + 3)


def write_torch(path: Path, rank: int) -> None:
    """Write nine steps of PyTorch's profiler, with shapes and memory."""
    file = KinetoFile()
    file.top["distributedInfo"] = {"rank": rank, "world_size": 4}
    file.device(0, "NVIDIA H100 80GB HBM3")
    for step in range(9):
        at = 1_000_000 * step
        file.annotation(f"ProfilerStep#{step}", at, at + 900_000)
        file.python("train.py(3): forward", at + 10, at + 800_000, call=step + 1)
        file.op("aten::mm", at + 100, at + 700_000, **product(4096, 4096, 4096))
        file.memory(at + 150, 1 << 20, 1 << 30, (step + 1) << 20, order=step)
        file.launch(step + 1, (at + 200, at + 300), (at + 1_000, at + 601_000), "gemm")
    file.write(path)


def write_recording(path: Path, rank: int) -> None:
    """Write what `flame record` does of a rank."""
    file = DumpFile(pid=100 + rank)
    file.meta("rank", str(rank))
    file.meta("world_size", "4")
    file.launch(0, 10, 1)
    file.kernel("gemm", 20, 120, 1)
    file.write(path)


def write_snapshot(path: Path, size: int) -> None:
    file = SnapshotFile()
    file.alloc(size, ("main", "load_weights"))
    file.free(file.alloc(4_096, ("main", "step")))
    file.fail(1 << 40, 1 << 30)
    file.write(path)


def fill_with_exports(folder: Path) -> None:
    """Write exports of Nsight Systems, and what is joined with them."""
    write_run(folder / "trace.sqlite")
    write_run(folder / "after.sqlite", slower=5_000)
    for name in ("before", "run", "b1", "b2", "runs/rank0", "runs/rank1", "late/rank99"):
        shutil.copy(folder / "trace.sqlite", folder / f"{name}.sqlite")
    for name in ("n1", "n2"):
        shutil.copy(folder / "after.sqlite", folder / f"{name}.sqlite")
    code = [Row("LDG.E R2, [R4]", {"stall_long_sb": 6}), Row("EXIT", {"stall_wait": 4})]
    (folder / "source.csv").write_text(sass_page(GEMM, code))
    (folder / "phases.json").write_text('{"attention": ["nvtx:attention"], "rest": ["."]}')


def fill_with_others(folder: Path) -> None:
    """Write traces of PyTorch, snapshots of memory and recordings."""
    for rank in range(4):
        write_torch(folder / f"rank{rank}.json.gz", rank)
    for name in ("trace", "run/rank0", "runs/a", "log/rank0"):
        shutil.copy(folder / "rank0.json.gz", folder / f"{name}.json.gz")
    text = gzip.decompress((folder / "trace.json.gz").read_bytes())
    packed = import_module(ZSTD).compress(text)
    (folder / "trace.json.zst").write_bytes(packed)
    for name in ("train", "node0", "node1"):
        (folder / f"{name}.flame").mkdir()
        for rank in range(4):
            write_recording(folder / f"{name}.flame" / f"{rank}.fdump", rank)
    for at, name in enumerate(("before", "after", "snapshot", "rank0", "rank1")):
        write_snapshot(folder / f"{name}.pickle", (1 << 20) + at)


def fill_with_what_is_made(folder: Path) -> None:
    """Have flame make summaries of ranks, and bases to compare with."""
    for name in ("run", "before", "after", "part.0", "part.1"):
        traces = [str(folder / "runs" / f"rank{number}.sqlite") for number in (0, 1)]
        assert main(["ranks", *traces, "-o", str(folder / f"{name}.flamesum")]) == 0
    for name in ("main", "before"):
        kept = str(folder / f"{name}.flame-base.json.gz")
        assert main(["diff", str(folder / "trace.sqlite"), "--keep-base", kept]) == 0


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the examples name."""
    folder = tmp_path_factory.mktemp("examples")
    for name in ("runs", "run", "late", "log"):
        (folder / name).mkdir()
    fill_with_exports(folder)
    fill_with_others(folder)
    fill_with_what_is_made(folder)
    return folder


@pytest.fixture
def here(
    stage: Path, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """That folder, but for what the command line is to write."""
    folder = tmp_path / "here"
    shutil.copytree(stage, folder, copy_function=os.link)
    line = request.node.callspec.params["line"] if hasattr(request.node, "callspec") else ""
    for option, name in pairwise(shlex.split(line)):
        if option in ("-o", "--keep-base") and line.count(name) == 1:
            (folder / name).unlink(missing_ok=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(stage / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return folder


def needs_shell(line: str) -> bool:
    lexer = shlex.shlex(line, posix=False, punctuation_chars=True)
    return any(set(word) <= set("|<>&;()") for word in lexer)


def run(line: str) -> int:
    """Run a command line here, or by a shell where it needs one; returns its exit code."""
    if not needs_shell(line):
        return main(shlex.split(line)[1:])
    shell = f'flame() {{ {sys.executable} -m flame "$@"; }}\n{line}'
    return subprocess.run(["bash", "-c", shell], stdin=subprocess.DEVNULL, check=False).returncode


@pytest.mark.parametrize(("page", "line"), RUN, ids=[line for _, line in RUN])
def test_the_command_line_runs(
    page: str, line: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    codes = next((each for key, each in OTHER_CODES.items() if re.search(key, line)), {0})
    code = run(line)
    told = capfd.readouterr()
    assert code in codes, (page, told.err)
    assert "Traceback" not in told.err


def test_every_reason_not_to_run_one_is_needed() -> None:
    for patterns in (NOT_RUN, OTHER_CODES):
        for pattern in patterns:
            assert any(re.search(pattern, line) for _, line in shell_lines()), pattern


# Python and JSON

NEEDS = {"docs/memory.md": "torch", "docs/pytorch.md": "torch", "docs/scripting.md": "pandas"}
"""What examples import, or have flame import, that need not be there."""


def blocks(kind: str) -> list[tuple[str, str]]:
    """Every block of a language, with its page."""
    pattern = re.compile(rf"^```{kind}\n(.*?)^```", re.MULTILINE | re.DOTALL)
    return [(name_of(path), code) for path in PAGES for code in pattern.findall(text_of(path))]


def test_examples_in_python_run_one_after_another(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, dict[str, object]] = {}
    for page, code in blocks("python"):
        compiled = compile(code, page, "exec")
        if NEEDS[page] == "torch":
            continue  # and a GPU, for a program that is the reader's
        if "to_pandas" in code:
            pytest.importorskip("pandas")
            pytest.importorskip("pyarrow")
        exec(compiled, names.setdefault(page, {}))
    assert list(names) == ["docs/scripting.md"]
    assert "gemm" in capsys.readouterr().out


def test_configurations_of_assistants_are_json_that_starts_the_server() -> None:
    found = [json.loads(code) for page, code in blocks("json") if page == "docs/mcp.md"]
    assert [one["mcpServers"]["flame"]["args"][0] for one in found] == ["mcp"]
