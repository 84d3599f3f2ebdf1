"""The text and the JSON of ``flame info``: levels, steps, samples, and how busy the GPUs were."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from flame.console.info import HEAVIEST, as_json, as_text, facts
from flame.console.trace_words import gpus
from flame.core.analysis.trace_summary import summarize
from flame.core.loading.inputs import Inputs
from flame.core.loading.many import load
from flame.core.model.meta import Device
from flame.core.projection.filter_options import where
from flame.core.projection.selection import Selection
from flame.core.units import format_ns, format_percent
from flame.exporters import speedscope
from tests.console.printed import (
    SAMPLE,
    Load,
    inputs,
    sampled,
    three_kernels,
    torch_profile,
    two_gpus,
)
from tests.support.profiles.project_tree import project_tree
from tests.support.writers.nsysfile import NsysFile


def test_levels_present_are_those_with_frames(profile_of: Load) -> None:
    profile = profile_of(three_kernels)
    found = ("process", "thread", "device", "stream", "launch", "nvtx", "category", "kernel")
    assert summarize(profile).levels == found


def test_levels_of_a_trace_without_gpu_work(profile_of: Load) -> None:
    profile = profile_of(lambda file: file.nvtx("load", 0, 100))
    assert summarize(profile).levels == ("process", "thread", "nvtx")


def test_facts_are_told_to_people_too(profile_of: Load) -> None:
    profile = profile_of(three_kernels)
    text = as_text(profile, inputs("trace.sqlite"))
    assert "GPU time    1.00 µs" in text
    assert re.search(r"^  kernel +3$", text, re.MULTILINE)
    assert re.search(r"^  NVTX +90\.0 % +900 ns$", text, re.MULTILINE)
    assert re.search(r"^GPUs +GPU 0  NVIDIA Test$", text, re.MULTILINE)
    assert facts(profile, inputs("trace.sqlite"))["warnings"] == list(profile.warnings)


def test_graph_kernels_with_captured_ranges_are_counted(profile_of: Load) -> None:
    def arrange(file: NsysFile) -> None:
        file.nvtx("capture", 0, 90)
        file.node(1, None, 50)
        file.node(2, 1, 90)
        file.api("cudaGraphLaunch_v10000", 100, 110, corr=1)
        file.kernel("known", 200, 300, corr=1, graph_node=2)
        file.kernel("unknown", 300, 400, corr=1, graph_node=77)

    profile = profile_of(arrange)
    assert facts(profile, inputs("x"))["graph_nodes"] == {"activities": 2, "captured": 1}
    assert "ranges of their capture: 1 of 2" in as_text(profile, inputs("x"))


def test_the_steps_of_a_training_are_told_with_their_times() -> None:
    profile = torch_profile()
    known = facts(profile, inputs("x"))
    text, told = as_text(profile, inputs("x")), known["steps"]
    assert isinstance(told, list) and len(told) > 1
    for step in told:
        times = rf"{re.escape(format_ns(step['duration_ns']))} +"
        times += re.escape(format_ns(step["gpu_time_ns"]))
        times += rf" +{re.escape(format_percent(step['busy_ns'], step['window_ns']))}"
        assert re.search(rf"^ +{step['number']} +{times}$", text, re.MULTILINE)
        only = project_tree(profile, where=where(step=(str(step["number"]),)))
        assert only.total[0] == step["gpu_time_ns"]
    assert text.count("steps: 5 of the PyTorch profiler\n  median 896 µs, slowest 5: 7.76 ms") == 1
    assert "  outside of them no GPU time\n" in text
    assert known["iterations"] == {
        "source": "profiler",
        "count": 5,
        "median_ns": sorted(step["duration_ns"] for step in told)[2],
        "slowest": 5,
        "slowest_ns": max(step["duration_ns"] for step in told),
        "outside": {
            part: {"gpu_time_ns": 0, "activities": 0}
            for part in ("before", "between", "after", "elsewhere")
        },
    }
    assert re.search(r"^  operators +\d", text, re.MULTILINE)
    assert not re.search(r"^  native +\d", text, re.MULTILINE)


def test_what_files_of_stacks_measure_stands_apart_from_its_title(tmp_path: Path) -> None:
    with (tmp_path / "x.json").open("wb") as file:
        speedscope.write(torch_profile(), Selection(), file, name="x")
    text = as_text(load(tmp_path / "x.json"), inputs("x.json"))
    assert re.search(r"^GPU activities +226$", text, re.MULTILINE)


def test_a_long_list_is_cut(profile_of: Load) -> None:
    def arrange(file: NsysFile) -> None:
        for number in range(30):
            file.process(1_000 + number, f"rank{number}")
            file.kernel("gemm", number * 10, number * 10 + 5, pid=1_000 + number)

    text = as_text(profile_of(arrange), inputs("x"))
    assert "and 20 more" in text
    assert "rank9" in text
    assert "rank10" not in text


@pytest.mark.parametrize(
    ("devices", "said"),
    [
        ([], ""),
        ([Device(3)], "GPU"),
        ([Device(0), Device(1)], "2 × GPU"),
        ([Device(0, "H100"), Device(1, "H100")], "2 × H100"),
        ([Device(0, "H100"), Device(1, "A2"), Device(2, "A2")], "H100 + 2 × A2"),
        ([Device(0, "\x1b[2J")], r"\x1b[2J"),
    ],
)
def test_gpus_in_short(devices: list[Device], said: str) -> None:
    assert gpus(devices) == said


def test_info_says_what_no_gpu_ran() -> None:
    decode = SAMPLE.with_name("decode_small.sqlite")
    lines = as_text(load(decode), Inputs((decode,))).splitlines()
    assert [line.split() for line in lines if line.startswith("synthetic")] == [
        ["synthetic", "no", "GPU", "ran", "this"]
    ]


def test_sentences_of_info_are_as_wide_as_the_terminal() -> None:
    decode = SAMPLE.with_name("decode_small.sqlite")
    notes = {}
    for columns in ("70", "300"):
        command = [sys.executable, "-m", "flame", "info", str(decode)]
        environment = {**os.environ, "COLUMNS": columns}
        text = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        notes[columns] = text.stdout[text.stdout.index("note: ") :].splitlines()
    assert 60 < max(map(len, notes["70"])) <= 70
    assert 80 < max(map(len, notes["300"])) <= 100


def test_samples_are_counted_and_it_is_said_whose_they_are() -> None:
    profile = sampled()
    assert profile.sampling is not None
    assert facts(profile, inputs("trace"))["pc_samples"] == {
        "samples": 8,
        "instructions": 2,
        "kernels": 1,
        "attribution": "kernel",
    }
    text = as_text(profile, inputs("trace"))
    assert "PC samples             8  instructions 2, kernels 1\n" in text
    assert "known by kernel: those of all its launches are one" in text
    assert re.search(r"SASS +40.0 % +40 ns", text)
    assert "sass, stall" in text
    own = replace(profile, sampling=replace(profile.sampling, exact=np.array([True])))
    assert "known by launch\n" in as_text(own, inputs("trace"))


def test_without_samples_there_is_no_word_of_them(profile_of: Load) -> None:
    profile = profile_of(three_kernels)
    assert facts(profile, inputs("trace"))["pc_samples"] is None
    assert "PC samples" not in as_text(profile, inputs("trace"))


def test_json_tells_how_busy_each_gpu_was(profile_of: Load) -> None:
    told = json.loads(as_json(profile_of(two_gpus), inputs("x")))
    first, second = told["utilization"]
    chunks = first.pop("chunks")
    assert len(chunks) == 60 and sum(chunks) == first["busy_ns"]
    assert first == {
        "device": 0,
        "source": 0,
        "begin_ns": 100,
        "window_ns": 1_000,
        "busy_ns": 600,
        "idle_ns": 400,
        "busy_percent": 60.0,
        "kernels_busy_ns": 500,
        "copies_alone_ns": 100,
    }
    assert (second["device"], second["window_ns"], second["busy_percent"]) == (1, 300, 100.0)
    assert told["idle_gaps"] == [
        {
            "device": 0,
            "source": 0,
            "begin_ns": 600,
            "ns": 400,
            "before": "norm",
            "after": "memcpy HtoD",
        }
    ]
    heaviest = told["heaviest"]
    assert heaviest["kernels"] == [
        {"name": "gemm", "place": "", "captured": False, "ns": 700, "count": 2},
        {"name": "norm", "place": "", "captured": False, "ns": 300, "count": 1},
    ]
    assert heaviest["ranges"] == [
        {"name": "layers.*", "place": "", "captured": False, "ns": 400, "count": 1}
    ]
    assert heaviest["modules"] == heaviest["functions"] == []


def test_text_tells_how_busy_each_gpu_was(profile_of: Load) -> None:
    lines = as_text(profile_of(two_gpus), inputs("x")).splitlines()
    busy = "GPU 0 NVIDIA Test  window 1.00 µs  busy 60.0 %  copies alone 10.0 %  idle 400 ns"
    assert busy in lines
    drawn = lines[lines.index(busy) + 1].strip()
    assert drawn[0] == drawn[-1] == "█" and " " in drawn
    assert "GPU 1 NVIDIA Test  window 300 ns  busy 100.0 %  idle 0 ns" in lines
    at = lines.index("longest idle gaps")
    assert lines[at + 1] == "   400 ns  GPU0 at 0.000001 s  norm → memcpy HtoD"


def test_nothing_is_told_of_gpus_where_nothing_ran(tmp_path: Path, profile_of: Load) -> None:
    told = facts(profile_of(lambda file: file.api("cudaMalloc", 0, 100)), inputs("x"))
    assert told["utilization"] == told["idle_gaps"] == []
    (tmp_path / "x.folded").write_text("a;b 3\n")
    stacks = facts(load(tmp_path / "x.folded"), inputs("x"))
    assert stacks["utilization"] == stacks["idle_gaps"] == []
    assert stacks["heaviest"] == {kind: [] for kind in HEAVIEST}
    assert "busy" not in as_text(load(tmp_path / "x.folded"), inputs("x"))
