"""What each command prints and writes."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from flame._version import __version__
from flame.cli.parser import COMMANDS
from flame.core.model.metrics import METRICS
from flame.core.projection.levels import LEVELS
from tests.cli.conftest import Flame, folded
from tests.conftest import EVERY_NSYS_TRACE


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


UTILIZATION = [
    {
        "device": 0,
        "source": 0,
        "begin_ns": 1_000,
        "window_ns": 1_020,
        "busy_ns": 170,
        "idle_ns": 850,
        "busy_percent": 16.667,
        "kernels_busy_ns": 150,
        "copies_alone_ns": 20,
        "chunks": [*[17] * 8, 14, *[0] * 49, 3, 17],
    },
    {
        "device": 1,
        "source": 0,
        "begin_ns": 3_000,
        "window_ns": 30,
        "busy_ns": 30,
        "idle_ns": 0,
        "busy_percent": 100.0,
        "kernels_busy_ns": 30,
        "copies_alone_ns": 0,
        "chunks": [0, 1] * 30,
    },
]


def heavy(name: str, ns: int, count: int) -> dict[str, object]:
    """What JSON says of a frame that has no place in the sources."""
    return {"name": name, "place": "", "captured": False, "ns": ns, "count": count}


HEAVIEST = {
    "kernels": [heavy("gemm", 130, 2), heavy("softmax", 50, 1)],
    "copies": [heavy("memcpy HtoD", 20, 1)],
    "communication": [],
    "ranges": [heavy("embed", 100, 1), heavy("step", 70, 2)],
    "modules": [],
    "functions": [],
}
UNKNOWN = dict.fromkeys(("chip", "sms", "memory_bytes", "memory_bytes_per_s", "capability", "uuid"))
GAP = {
    "device": 0,
    "source": 0,
    "begin_ns": 1_150,
    "ns": 850,
    "before": "softmax",
    "after": "memcpy HtoD",
}


def test_info_json_keeps_its_contract(flame: Flame, trace: Path) -> None:
    told = json.loads(flame("info", trace, "--json").out)
    assert told.pop("warnings")
    assert told == {
        "path": str(trace),
        "ranks": None,
        "memory": None,
        "efficiency": None,
        "gpu_metrics": [],
        "sources": [
            {
                "label": "",
                "path": str(trace),
                "format": "nsys-sqlite",
                "producer": "Nsight Systems",
                "schema_version": "3.25.0",
                "rank": None,
                "versions": {},
                "activities": 4,
                "gpu_time_ns": 200,
                "counters": {},
            }
        ],
        "format": "nsys-sqlite",
        "producer": "Nsight Systems",
        "synthetic": False,
        "schema_version": "3.25.0",
        "versions": {},
        "devices": [
            {"id": 0, "name": "NVIDIA Test", "source": 0, "sources": [0], **UNKNOWN},
            {"id": 1, "name": "NVIDIA Test", "source": 0, "sources": [0], **UNKNOWN},
        ],
        "processes": [
            {"pid": 100, "name": "trainer", "source": 0},
            {"pid": 200, "name": "loader", "source": 0},
        ],
        "activities": {"kernel": 3, "memcpy": 1, "memset": 0, "graph": 0},
        "gpu_time_ns": 200,
        "duration_ns": 3030,
        "utilization": UTILIZATION,
        "heaviest": HEAVIEST,
        "idle_gaps": [GAP],
        "coverage": {
            "launch": {"ns": 200, "percent": 100.0},
            "nvtx": {"ns": 170, "percent": 85.0},
            "python": {"ns": 0, "percent": 0.0},
            "native": {"ns": 0, "percent": 0.0},
        },
        "categories": {
            "matrix product": {"ns": 130, "percent": 72.222},
            "normalisation and reduction": {"ns": 50, "percent": 27.778},
        },
        "pc_samples": None,
        "graph_nodes": {"activities": 0, "captured": 0},
        "measures": [],
        "iterations": None,
        "steps": [],
        "levels": [
            "process",
            "thread",
            "device",
            "stream",
            "launch",
            "nvtx",
            "shapes",
            "category",
            "kernel",
        ],
    }


NO_SAMPLES = "there are no PC samples here: name a report of Nsight Compute by --ncu"


@pytest.mark.parametrize("levels", ["sass", "nvtx,stall", "kernel,sass,stall"])
def test_levels_of_samples_without_any_say_how_to_get_them(
    levels: str, flame: Flame, trace: Path, tmp_path: Path
) -> None:
    shown = flame("view", trace, "--print", "--levels", levels)
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.count(NO_SAMPLES) == 1
    exported = flame("export", trace, "-f", "folded", "--levels", levels, "-o", tmp_path / "o")
    assert exported.code == 0
    assert f"note: {NO_SAMPLES}" in exported.err


@pytest.mark.parametrize("command", [("view",), ("export", "-f", "speedscope")])
def test_the_metric_of_samples_without_any_says_how_to_get_them(
    command: tuple[str, ...], flame: Flame, trace: Path
) -> None:
    result = flame(*command, trace, "--metric", "stalls")
    assert result.code == 2
    assert result.complaint().startswith(NO_SAMPLES)


def test_version(flame: Flame) -> None:
    assert flame("--version").out == f"flame {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command(command: str, flame: Flame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # of which argparse makes colours from Python 3.14 on
    result = flame(command, "--help")
    assert result.code == 0
    assert result.out.startswith(f"usage: flame {command}")
    assert "\x1b" not in result.out


def test_help_names_every_level_and_metric(flame: Flame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    words = set(re.findall(r"\w+", flame("view", "--help").out))
    assert words >= {*LEVELS, *(metric.key for metric in METRICS)}


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


@pytest.mark.parametrize("name", EVERY_NSYS_TRACE)
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
