"""A glance at a trace of the PyTorch profiler: whether it is one, and its GPUs."""

from __future__ import annotations

import json

import pytest

from flame.core.readers.kineto.glance import glance

DEVICES = [{"id": 0, "name": "NVIDIA H100", "warpSize": 32}, {"id": 1, "name": "NVIDIA L4"}]


def head(**top: object) -> bytes:
    return json.dumps({"schemaVersion": 1, **top, "traceEvents": []}).encode()


def test_the_gpus_of_the_machine_are_named() -> None:
    assert glance(head(deviceProperties=DEVICES)) == ("NVIDIA H100", "NVIDIA L4")


def test_a_trace_without_gpus_names_none() -> None:
    assert glance(head(deviceProperties=[])) == glance(head()) == ()


@pytest.mark.parametrize("end", [30, 60, 90])
def test_a_list_beyond_the_beginning_is_left_out(end: int) -> None:
    assert glance(head(deviceProperties=DEVICES)[:end]) == ()


@pytest.mark.parametrize("wrong", [[1], [{"id": "x"}], [["a]b"]], "text", [[[[]]]]])
def test_a_damaged_list_names_none(wrong: object) -> None:
    assert glance(head(deviceProperties=wrong)) == ()


@pytest.mark.parametrize(
    "category", ["cpu_op", "kernel", "Kernel", "Operator", "Runtime", "gpu_memcpy", "Memset"]
)
def test_a_trace_without_a_head_is_told_by_its_events(category: str) -> None:
    assert glance(json.dumps([{"ph": "X", "cat": category}]).encode()) == ()


@pytest.mark.parametrize("category", ["devtools.timeline", "toplevel", "blink", ""])
def test_a_trace_of_another_program_is_none(category: str) -> None:
    assert glance(json.dumps({"traceEvents": [{"ph": "X", "cat": category}]}).encode()) is None
