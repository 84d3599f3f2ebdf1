"""What ``flame record`` records: kernels and ranges, processes and ranks, memory."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from flame.core.loading.many import load_all
from flame.core.model.profile import Profile
from tests.cli.conftest import PYTHON, Flame, Record, said
from tests.cli.programs import FLUSHED, KERNELS, MEMORY, RANGES
from tests.support.profiles.project_tree import project_tree
from tests.support.writers.fdumprecords import records

pytestmark = pytest.mark.deep

FORKED = (
    KERNELS
    + """
import os, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # CPython 3.12: of forks beside threads
if os.fork() == 0:
    import nvtx
    with nvtx.annotate("child"):
        pass
    os._exit(0)
os.wait()
"""
)


def only_recording(folder: Path) -> Path:
    (found,) = folder.glob("*.flame")
    return found


def kernels_of(folder: Path) -> dict[str, int]:
    profile: Profile = load_all([folder])
    tree = project_tree(profile, "kernel", metric="count")
    return {tree.name(node): int(tree.own[node]) for node in range(1, len(tree))}


def test_every_kernel_is_there_and_summed_up(record: Record, folder: Path) -> None:
    done = record("--", *PYTHON, KERNELS)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    target = only_recording(folder)
    assert kernels_of(target) == {"gemm": 10, "softmax": 10}
    lines = said(done)
    assert lines[0].startswith(f"recorded {target.name}: 1 process, 20 kernels, ")
    assert lines[1].startswith("GPU time 1.20 ms in 20 activities")
    assert lines[2] == "most of it: gemm 83.3 %, softmax 16.7 %"
    assert lines[3].startswith("coverage of GPU time: launch 100.0 %")
    assert lines[-1] == f"see it with: flame view {target.name}"


def test_ranges_need_no_gpu(record: Record, folder: Path) -> None:
    done = record(*PYTHON, RANGES, env={**os.environ, "LD_LIBRARY_PATH": ""})
    assert done.returncode == 0
    lines = said(done)
    assert "1 process, 4 ranges" in lines[0]
    assert lines[1].startswith("nothing ran on a GPU; host time")
    (dump,) = only_recording(folder).glob("*.fdump")
    ranges = records(dump)["range"]
    lengths = np.sort(ranges["end"] - ranges["start"])  # the last is "outer", which has the rest
    share = 100 * lengths[:-1].sum() / lengths[-1]
    assert share > 50 and lines[2].startswith(f"most of it: inner {share:.1f} %")


def test_all_processes_are_recorded(record: Record, folder: Path) -> None:
    program = folder / "program.py"
    program.write_text(KERNELS)
    done = record(
        "-o",
        "both",
        "bash",
        "-c",
        f"{sys.executable} program.py & {sys.executable} program.py; wait",
    )
    assert done.returncode == 0
    assert said(done)[0].startswith("recorded both: 2 processes, 40 kernels")
    assert kernels_of(folder / "both") == {"gemm": 20, "softmax": 20}


def test_ranks_are_one_recording(record: Record, folder: Path) -> None:
    (folder / "program.py").write_text(KERNELS)
    one = f"RANK=$rank {sys.executable} program.py &"
    done = record("bash", "-c", f"for rank in 0 1 2 3 4 5 6 7; do {one} done; wait")
    assert "8 processes, 160 kernels" in said(done)[0]
    profile = load_all([only_recording(folder)])
    assert [one.label for one in profile.sources] == [f"rank {rank}" for rank in range(8)]
    ranks = project_tree(profile, "rank", metric="gpu").root.children
    assert [node.total for node in ranks] == [1_200_000] * 8


def test_a_fork_has_a_dump_of_its_own(record: Record, folder: Path) -> None:
    assert "2 processes, 20 kernels, 1 range" in said(record(*PYTHON, FORKED))[0]


def test_an_exec_goes_on_in_a_new_dump(record: Record, folder: Path) -> None:
    (folder / "program.py").write_text(KERNELS)
    # What CUPTI still holds would be lost as in a crash.
    again = f"{KERNELS}{FLUSHED}os.execv({sys.executable!r}, [{sys.executable!r}, 'program.py'])"
    assert "2 processes, 40 kernels" in said(record(*PYTHON, again))[0]


def test_without_python_frames(record: Record, folder: Path) -> None:
    assert record("--no-python", "-o", "plain", *PYTHON, KERNELS).returncode == 0
    assert load_all([folder / "plain"]).coverage["python"].ns == 0


def test_recording_stops_and_the_program_runs_on(record: Record) -> None:
    more = "\nfrom flame.attach.discover.finished import RUNNING, read_header\n"
    more += "while read_header(dump).state == RUNNING: time.sleep(0.01)\n"
    more += "for _ in range(7): launch(gemm)\nprint('to the end')"
    done = record("--duration", "3s", *PYTHON, KERNELS + FLUSHED + more)
    assert done.stdout == "to the end\n"
    assert "1 process, 20 kernels" in said(done)[0]
    assert "stopped as told" in said(done)[0]


def test_a_full_recording_says_what_it_lost(record: Record) -> None:
    more = "for _ in range(40_000): launch(gemm)"
    done = record("-q", "--max-size", "1MB", *PYTHON, KERNELS + more)
    assert done.returncode == 0
    (line,) = said(done)
    lost = re.search(r"is not all: .*, ([\d,]+) dropped, no room for more", line)
    assert lost, line
    assert int(lost[1].replace(",", "")) > 10_000


def test_whose_memory_it_was_is_seen_at_the_peak(
    record: Record, flame: Flame, folder: Path
) -> None:
    done = record("--memory", "-o", "x", "--", *PYTHON, MEMORY)
    lines = said(done)
    assert "20 kernels, 6 memory events, " in lines[0]
    assert lines[-2] == "whose memory it was at the peak: flame view x --metric peak"
    peak = flame("view", "x", "--print", "--metric", "peak")
    assert peak.code == 0 and "memory at the peak 4.00 MB" in peak.out
    [weights] = [line for line in peak.lines if "load_weights" in line]
    [buffers] = [line for line in peak.lines if "activations" in line]
    assert weights.split()[:3] == ["75.0", "3.00", "MB"]
    assert buffers.split()[:3] == ["25.0", "1.00", "MB"]
    told = json.loads(flame("info", "--json", "x").out)["memory"]["devices"][0]
    assert (told["peak"], told["live_end"]) == (4_000_000, 3_000_000)
    report = flame("report", "x", "--section", "memory", "--fail-on", "memory.peak > 3MB")
    assert report.code == 5 and "load_weights" in report.out
    assert record("-q", "-o", "y", "--", *PYTHON, MEMORY).returncode == 0
    assert "memory" in flame("view", "y", "--print", "--metric", "peak").complaint()


def test_a_recording_within_a_recording_belongs_to_the_inner_one(
    record: Record, folder: Path
) -> None:
    inner = (sys.executable, "-m", "flame", "record", "-o", "inner", "--")
    done = record("-o", "outer", *inner, *PYTHON, KERNELS)
    assert done.returncode == 0
    assert any("named another flame record" in line for line in said(done))
    assert kernels_of(folder / "inner") == {"gemm": 10, "softmax": 10}
    assert not (folder / "outer").exists()
