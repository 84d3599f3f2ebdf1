"""The command line as scripts see it: streams, exit codes, files, and one line of complaint."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from flame._version import __version__
from flame.cli import main
from flame.core.metrics import METRIC_KEYS
from flame.core.project import LEVELS
from tests.conftest import NSYS_TRACES
from tests.nsysfile import HTOD, NsysFile

Flame = Callable[..., "Result"]
Export = Callable[..., dict[str, int]]

DEMANGLED = "void gemm<float>(float*)"
HOSTILE = "evil\x1b[31m;red\nline\u202e"


class Result:
    """What one run left behind."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    def complaint(self) -> str:
        """The one line on stderr of a run that failed, without its prefix."""
        assert self.out == ""
        assert self.err.startswith("flame: ")
        assert self.err.endswith("\n")
        assert self.err.count("\n") == 1
        return self.err.removeprefix("flame: ").rstrip("\n")


@pytest.fixture
def flame(capfd: pytest.CaptureFixture[str]) -> Flame:
    """Runs the command line in this process."""

    def run(*args: str | Path) -> Result:
        capfd.readouterr()
        code = main([str(arg) for arg in args])
        out, err = capfd.readouterr()
        return Result(code, out, err)

    return run


def spawn(
    *args: str | Path, encoding: str = "utf-8", **kwargs: object
) -> subprocess.CompletedProcess[str]:
    """Runs the command line as a process of its own."""
    command = [sys.executable, "-m", "flame", *map(str, args)]
    settings: dict[str, object] = {"capture_output": True, "timeout": 60, **kwargs}
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        command, check=False, stdin=subprocess.DEVNULL, encoding=encoding, **settings
    )


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, and a known width."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("FLAME_DEBUG", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def trace(folder: Path) -> Path:
    """Two processes on two GPUs: 100 + 30 ns of gemm, 50 ns of softmax, a copy of 20 ns."""
    path = folder / "run.sqlite"
    with NsysFile(path) as file:
        file.gpu(0, "NVIDIA Test")
        file.gpu(1, "NVIDIA Test")
        file.process(100, "trainer")
        file.process(200, "helper")
        file.nvtx("step, op_id = 7", 0, 100)
        file.nvtx("embed, op_id = 8, sizes = [[2, 3]]", 10, 40)
        file.nvtx("request", 0, 60, type=60)
        file.api("cudaLaunchKernel_v7000", 20, 25, corr=1)
        file.api("cudaLaunchKernel_v7000", 50, 55, corr=2)
        file.api("cudaMemcpyAsync_v3020", 60, 65, corr=3)
        file.api("cudaLaunchKernel_v7000", 70, 75, corr=1, pid=200, tid=201)
        gemm = partial(file.kernel, "gemm", demangled=DEMANGLED, mangled="_Z4gemmIfEvPf")
        gemm(1_000, 1_100, corr=1)
        file.kernel("softmax", 1_100, 1_150, corr=2, stream=9)
        file.memcpy(HTOD, 2_000, 2_020, corr=3)
        gemm(3_000, 3_030, corr=1, pid=200, device=1)
    return path


def folded(result: Result) -> dict[str, int]:
    """Stacks and values of a folded export."""
    pairs = (line.rpartition(" ") for line in result.lines)
    return {stack: int(value) for stack, _, value in pairs}


@pytest.fixture
def export(flame: Flame, trace: Path) -> Export:
    """Folded stacks of the trace under the options given."""

    def run(*options: str) -> dict[str, int]:
        result = flame("export", trace, "-f", "folded", "-o", "-", *options)
        assert result.code == 0, result.err
        return folded(result)

    return run


# -- what comes out ---------------------------------------------------------------------------


def test_view_without_a_terminal_prints(flame: Flame, trace: Path) -> None:
    result = flame("view", trace)
    assert result.code == 0
    assert result.err == ""
    assert "softmax" in result.out
    assert "\x1b" not in result.out


def test_a_path_alone_is_a_view(flame: Flame, trace: Path) -> None:
    assert flame(trace, "--levels", "kernel").out == flame("view", trace, "--levels", "kernel").out
    assert flame("--print", trace).out == flame("view", trace).out


def test_a_command_wins_over_a_file_of_its_name(flame: Flame, trace: Path) -> None:
    trace.rename("info")
    assert "PATH" in flame("info").complaint()
    assert flame("./info").code == 0


def test_a_path_may_begin_with_a_dash(flame: Flame, trace: Path) -> None:
    trace.rename("-f")
    assert flame("--", "-f").code == 0


def test_info_speaks_to_people(flame: Flame, trace: Path) -> None:
    out = flame("info", trace).out
    for said in ("nsys-sqlite", "200 ns", "NVIDIA Test", "100  trainer", "note: "):
        assert said in out


def test_info_json_keeps_its_contract(flame: Flame, trace: Path) -> None:
    told = json.loads(flame("info", trace, "--json").out)
    assert told.pop("warnings")
    assert told == {
        "path": str(trace),
        "format": "nsys-sqlite",
        "producer": "Nsight Systems",
        "schema_version": "3.25.0",
        "devices": [{"id": 0, "name": "NVIDIA Test"}, {"id": 1, "name": "NVIDIA Test"}],
        "processes": [{"pid": 100, "name": "trainer"}, {"pid": 200, "name": "helper"}],
        "activities": {"kernel": 3, "memcpy": 1, "memset": 0, "graph": 0},
        "gpu_time_ns": 200,
        "duration_ns": 3030,
        "coverage": {
            "launch": {"ns": 200, "percent": 100.0},
            "nvtx": {"ns": 170, "percent": 85.0},
            "python": {"ns": 0, "percent": 0.0},
            "native": {"ns": 0, "percent": 0.0},
        },
        "graph_nodes": {"activities": 0, "captured": 0},
        "levels": ["process", "thread", "device", "stream", "launch", "nvtx", "shapes", "kernel"],
    }


def test_version(flame: Flame) -> None:
    assert flame("--version").out == f"flame {__version__}\n"


@pytest.mark.parametrize("command", ["view", "export", "info"])
def test_help_of_every_command(command: str, flame: Flame) -> None:
    result = flame(command, "--help")
    assert result.code == 0
    assert f"usage: flame {command}" in result.out


def test_help_names_every_level_and_metric(flame: Flame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    words = set(re.findall(r"\w+", flame("view", "--help").out))
    assert words >= {*LEVELS, *METRIC_KEYS}


# -- selection --------------------------------------------------------------------------------


def test_all_of_it(export: Export) -> None:
    assert export() == {
        "cudaLaunchKernel;gemm": 30,
        "cudaLaunchKernel;step;embed;gemm": 100,
        "cudaLaunchKernel;step;softmax": 50,
        "cudaMemcpyAsync;step;memcpy HtoD": 20,
    }


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--metric", "count"], {"gemm": 2, "softmax": 1, "memcpy HtoD": 1}),
        (["--metric", "launch"], {"gemm": 10, "softmax": 5, "memcpy HtoD": 5}),
        (["--time", "2us/"], {"memcpy HtoD": 20, "gemm": 30}),
        (["--time", "-5us/1050ns"], {"gemm": 100}),
        (["--time=-5us/1050ns"], {"gemm": 100}),
        (["--nvtx-range", "emb*"], {"gemm": 100}),
        (["--device", "1"], {"gemm": 30}),
        (["--device", "0,1", "--stream", "9"], {"softmax": 50}),
        (["--stream", "9", "--stream", "7", "--pid", "200"], {"gemm": 30}),
        (["--tid", "201"], {"gemm": 30}),
        (["--kernel", "^soft"], {"softmax": 50}),
        (["--kernel", "float"], {"gemm": 130}),
        (["--include", "memcpy,memset"], {"memcpy HtoD": 20}),
        (["--kernel-names", "demangled", "--pid", "200"], {DEMANGLED: 30}),
        (["--kernel-names", "mangled", "--pid", "200"], {"_Z4gemmIfEvPf": 30}),
    ],
)
def test_options_that_choose_kernels(
    options: list[str], expected: dict[str, int], export: Export
) -> None:
    assert export("--levels", "kernel", *options) == expected


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--levels", "nvtx"], "step"),
        (["--levels", "kernel,nvtx"], "softmax;step"),
        (["--levels", "process,device,stream"], "trainer [100];GPU 0 NVIDIA Test;stream 9"),
        (["--levels", "nvtx", "--nvtx-names", "raw"], "step, op_id = 7"),
        (["--levels", "nvtx", "--rename", "st.p=all"], "all"),
        (["--levels", "nvtx", "--rename", "s=t", "--rename", "tt=u"], "uep"),
        (["--levels", "nvtx", "--nvtx-start-end"], "step;request"),
    ],
)
def test_options_that_name_and_order(options: list[str], expected: str, export: Export) -> None:
    assert export("--stream", "9", *options) == {expected: 50}


@pytest.mark.parametrize(
    ("options", "stack"),
    [
        (["--shapes"], "cudaLaunchKernel;step;embed;[[2, 3]];gemm"),
        (["--shapes", "--levels", "nvtx,kernel"], "step;embed;[[2, 3]];gemm"),
        (["--shapes", "--levels", "shapes,nvtx"], "[[2, 3]];step;embed"),
        (["--levels", "shapes"], "[[2, 3]]"),
    ],
)
def test_shapes_are_a_level(options: list[str], stack: str, export: Export) -> None:
    assert export(*options, "--nvtx-range", "embed") == {stack: 100}


def test_view_takes_the_same_selection(flame: Flame, trace: Path) -> None:
    out = flame("view", trace, "--levels", "kernel", "--stream", "9").out
    assert "softmax" in out
    assert "gemm" not in out


# -- files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "name"),
    [("folded", "run.collapsedstack.txt"), ("speedscope", "run.speedscope.json")],
)
def test_export_names_its_file_after_the_trace(
    form: str, name: str, flame: Flame, trace: Path, folder: Path
) -> None:
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    os.chdir(elsewhere)
    result = flame("export", trace, "-f", form)
    assert result.code == 0
    assert result.out == ""
    assert result.err.splitlines()[-1] == f"flame: wrote {name}: 4 stacks, GPU time 200 ns"
    assert [path.name for path in elsewhere.iterdir()] == [name]


def test_export_says_what_is_missing(flame: Flame, trace: Path) -> None:
    err = flame("export", trace, "-f", "folded").err.splitlines()
    assert len(err) > 1
    assert all(line.startswith("flame: note: ") for line in err[:-1])


def test_export_is_a_speedscope_file(flame: Flame, trace: Path) -> None:
    result = flame("export", trace, "-f", "speedscope", "-o", "-")
    told = json.loads(result.out)
    assert told["name"] == "run.sqlite"
    assert told["profiles"][0]["endValue"] == 200


def test_export_loses_no_file_that_was_not_named(flame: Flame, trace: Path, folder: Path) -> None:
    kept = folder / "run.collapsedstack.txt"
    kept.write_text("mine")
    result = flame("export", trace, "-f", "folded")
    assert result.code == 2
    assert "-o" in result.complaint()
    assert kept.read_text() == "mine"
    assert flame("export", trace, "-f", "folded", "-o", kept).code == 0
    assert kept.read_text() != "mine"


def test_export_never_replaces_the_trace(flame: Flame, trace: Path, folder: Path) -> None:
    before = trace.read_bytes()
    (folder / "link").symlink_to(trace)
    for target in (trace, folder / "link"):
        result = flame("export", trace, "-f", "folded", "-o", target)
        assert result.code == 2
        assert "the trace itself" in result.complaint()
    assert trace.read_bytes() == before


def test_export_to_where_it_cannot_write(flame: Flame, trace: Path) -> None:
    result = flame("export", trace, "-f", "folded", "-o", "no/such/folder.txt")
    assert result.code == 3
    assert "no/such/folder.txt" in result.complaint()


def test_a_name_cannot_speak_to_the_terminal(flame: Flame, folder: Path) -> None:
    path = folder / "hostile\x1b[2J.sqlite"
    with NsysFile(path) as file:
        file.gpu(0, HOSTILE)
        file.process(100, HOSTILE)
        file.nvtx(HOSTILE, 0, 100)
        file.api("cudaLaunchKernel_v7000", 20, 25)
        file.kernel(HOSTILE, 1_000, 1_100)
    for command in (["view"], ["info"]):
        result = flame(*command, path)
        assert result.code == 0
        assert r"evil\x1b[31m;red\nline\u202e" in result.out
        assert not set(result.out) & set("\x1b\u202e")
    assert json.loads(flame("info", path, "--json").out)["devices"][0]["name"] == HOSTILE
    assert "\x1b" not in flame(f"{path}.gone").complaint()


def test_text_outside_utf8_is_no_obstacle(folder: Path) -> None:
    name = os.fsdecode(b"caf\xe9.sqlite")
    with NsysFile(folder / name) as file:
        file.kernel(b"na\xefve", 0, 10)
    for command in (["view", name], ["info", name], ["info", "--json", name]):
        done = spawn(*command)
        assert done.returncode == 0, done.stderr
    done = spawn("export", name, "-f", "folded", "-o", "-", encoding="utf-8")
    assert done.stdout == "[no launch recorded];na\ufffdve 10\n"


def test_ascii_locale(trace: Path) -> None:
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = spawn("view", trace, env=env)
    assert done.returncode == 0
    assert "softmax" in done.stdout


# -- what goes wrong --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "flame PATH"),
        (["view"], "PATH"),
        (["info", "a", "b"], "unknown: b"),
        (["export", "x"], "-f"),
        (["export", "x", "-f", "svg"], "'svg'"),
        (["view", "x", "--level", "kernel"], "--level"),
        (["view", "x", "--levels", "kernel,nope"], "'nope'"),
        (["view", "x", "--levels", ","], "--levels"),
        (["view", "x", "--levels", "nvtx,nvtx"], "twice"),
        (["view", "x", "--metric", "nope"], "'nope'"),
        (["view", "x", "--metric", ""], "metric"),
        (["view", "x", "--shapes", "--levels", "kernel"], "--shapes"),
        (["view", "x", "--time", "7s/5s"], "empty"),
        (["view", "x", "--time", "soon/"], "soon"),
        (["view", "x", "--time"], "--time"),
        (["view", "x", "--nvtx-range", ""], "--nvtx-range"),
        (["view", "x", "--device", "zero"], "'zero'"),
        (["view", "x", "--device", "-1"], "'-1'"),
        (["view", "x", "--stream", "1,,2"], "'1,,2'"),
        (["view", "x", "--pid", "9" * 30], "not a number"),
        (["view", "x", "--kernel", "(unclosed"], "--kernel"),
        (["view", "x", "--include", "kernel,nope"], "'nope'"),
        (["view", "x", "--kernel-names", "short"], "'short'"),
        (["view", "x", "--nvtx-names", "short"], "'short'"),
        (["view", "x", "--rename", "no rule"], "--rename"),
        (["view", "x", "--rename", "(=x"], "--rename"),
        (["view", "x\n", "--nope\x1b[0m"], r"\x1b"),
    ],
)
def test_usage_error(args: list[str], said: str, flame: Flame) -> None:
    result = flame(*args)
    assert result.code == 2
    assert said in result.complaint()


def test_usage_errors_say_which_help_to_ask(flame: Flame) -> None:
    assert "(see flame view --help)" in flame("x", "--nope").complaint()
    assert "(see flame export --help)" in flame("export").complaint()


@pytest.mark.parametrize("command", [["view"], ["info"], ["export", "-f", "folded"], []])
@pytest.mark.parametrize("content", [None, b"", b"no trace", b"SQLite format 3\0 and no more"])
def test_input_error(content: bytes | None, command: list[str], flame: Flame, folder: Path) -> None:
    path = folder / "bad.sqlite"
    if content is not None:
        path.write_bytes(content)
    result = flame(*command, path)
    assert result.code == 3
    assert str(path) in result.complaint()
    assert not list(folder.glob("*.txt"))


@pytest.mark.parametrize("command", [["view"], ["export", "-f", "folded"]])
def test_nothing_matches(command: list[str], flame: Flame, trace: Path, folder: Path) -> None:
    result = flame(*command, trace, "--kernel", "nothing like it")
    assert result.code == 4
    assert "nothing" in result.complaint()
    assert not list(folder.glob("*.txt"))


def test_nothing_to_export(flame: Flame, folder: Path) -> None:
    with NsysFile(folder / "host.sqlite") as file:
        file.nvtx("load", 0, 100)
    assert flame("export", "host.sqlite", "-f", "folded", "-o", "-").out.endswith(";load 100\n")
    result = flame("export", "host.sqlite", "-f", "folded", "--metric", "gpu")
    assert result.code == 4
    assert "GPU time is zero" in result.complaint()


def test_an_unforeseen_error_is_one_line_too(
    flame: Flame, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise KeyError("first\nsecond")

    monkeypatch.setattr("flame.report.as_text", broken)
    result = flame("info", trace)
    assert result.code == 70
    assert "internal error: KeyError" in result.complaint()
    assert "FLAME_DEBUG=1" in result.err
    monkeypatch.setenv("FLAME_DEBUG", "1")
    assert "Traceback" in flame("info", trace).err


def test_interrupted_load_is_quiet(
    flame: Flame, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("flame.core.load.load", interrupted)
    result = flame("info", trace)
    assert (result.code, result.out, result.err) == (130, "", "")


# -- streams ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    ["--help", "info {}", "info --json {}", "view {}", "export -f folded -o - {}"],
)
def test_a_closed_pipe_is_quiet(command: str, trace: Path) -> None:
    """The reading end is closed before anything is written: what ``| head`` does, only surer."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = spawn(
            *command.format(trace).split(),
            capture_output=False,
            stdout=writer,
            stderr=subprocess.PIPE,
        )
    finally:
        os.close(writer)
    assert done.returncode == 0
    noise = [line for line in done.stderr.splitlines() if not line.startswith("flame: note:")]
    assert noise == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("command", ["info {}", "view {}", "export -f folded -o - {}"])
def test_a_full_disk_is_told(command: str, trace: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = spawn(
            *command.format(trace).split(),
            capture_output=False,
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert "No space left" in done.stderr


def in_terminal(*args: str | Path, term: str = "xterm-256color") -> tuple[int, str]:
    """Exit code of a run whose three streams are a terminal, and what that terminal received."""
    pid, terminal = pty.fork()
    if pid == 0:
        env = {**os.environ, "TERM": term}
        os.execve(sys.executable, [sys.executable, "-m", "flame", *map(str, args)], env)
    received = b""
    while True:
        try:
            block = os.read(terminal, 4096)
        except OSError:  # Linux says so when the other side is closed
            break
        if not block:
            break
        received += block
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), received.decode("utf-8", "replace")


def test_the_app_refuses_a_dumb_terminal(trace: Path) -> None:
    code, said = in_terminal("view", trace, term="dumb")
    assert code == 2
    assert said.startswith("flame: ")
    assert "--print" in said


def test_print_prints_on_a_terminal(trace: Path) -> None:
    code, said = in_terminal("view", trace, "--print")
    assert code == 0
    assert "softmax" in said
    assert "\x1b" not in said


def test_static_view_needs_no_terminal_library(trace: Path) -> None:
    report = "import atexit,sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))"
    code = f"{report}; from flame.cli import main; main(['view', {str(trace)!r}])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    loaded = set(done.stderr.split())
    assert "numpy" in loaded
    assert not loaded & {"textual", "rich"}


# -- real traces ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NSYS_TRACES)
def test_real_traces_are_told(
    name: str, flame: Flame, nsys_trace: Callable[[str], Path], folder: Path
) -> None:
    path = nsys_trace(name)
    told = json.loads(flame("info", path, "--json").out)
    assert told["path"] == str(path)
    assert sum(told["activities"].values()) > 0 or told["warnings"]
    view = flame("view", path)
    assert view.code == 0
    assert max(map(len, view.lines)) <= 120
    exported = flame("export", path, "-f", "folded", "-o", "-")
    if told["gpu_time_ns"]:
        assert sum(folded(exported).values()) == told["gpu_time_ns"]
