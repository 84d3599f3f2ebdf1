"""Kinds, files and lines recovered from frames that profilers wrote as text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.model.frames import NO_LAUNCH, Frame, Kind
from flame.core.readers.shared.frame_text import NO_NAME, parse_frame

PYTHON = Kind.PYTHON
LIBRARY = (("module", "libc.so.6"),)


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        ("forward (model/layers.py:12)", Frame(PYTHON, "forward", "model/layers.py", 12)),
        ("<module> (train.py:3)", Frame(PYTHON, "<module>", "train.py", 3)),
        ("f (dir (old).py:3)", Frame(Kind.FRAME, "f (dir (old).py:3)")),
        (
            "_call (<frozen importlib._bootstrap>:241)",
            Frame(PYTHON, "_call", "<frozen importlib._bootstrap>", 241),
        ),
        ("forward (layers.py)", Frame(PYTHON, "forward", "layers.py")),
        ("numpy.dot (blas.pyx:8)", Frame(PYTHON, "numpy.dot", "blas.pyx", 8)),
        (
            "at::add(Tensor const&) (add.cpp:7)",
            Frame(Kind.NATIVE, "at::add(Tensor const&)", "add.cpp", 7),
        ),
        ("__libc_start_main (libc.so.6)", Frame(Kind.NATIVE, "__libc_start_main", extra=LIBRARY)),
        ("main (inlined)", Frame(Kind.FRAME, "main (inlined)")),
        ("operator() (<unknown>)", Frame(Kind.FRAME, "operator() (<unknown>)")),
        ("render (app.js:10:5)", Frame(Kind.FRAME, "render (app.js:10:5)")),
    ],
)
def test_py_spy(text: str, frame: Frame) -> None:
    assert parse_frame(text) == frame


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("+0x0120 LDG.E R2, [R4]", Kind.SASS),
        ("+0x01f0 @P0 BRA `(.L_x_2) (gemm.cu)", Kind.SASS),
        ("+0x0120", Kind.FRAME),
        ("add+0x0120 LDG.E", Kind.FRAME),
    ],
)
def test_instructions(text: str, kind: Kind) -> None:
    assert parse_frame(text) == Frame(kind, text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('process 123:"python train.py"', Kind.PROCESS),
        ("process [123]", Kind.PROCESS),
        ("process the queue", Kind.FRAME),
        ("P123", Kind.PROCESS),
        ("P123x", Kind.FRAME),
        ('thread (0x7F12): "Main"', Kind.THREAD),
        ("thread (88): worker", Kind.THREAD),
        ("thread 123", Kind.THREAD),
        ("thread [123]", Kind.THREAD),
        ("thread pool", Kind.FRAME),
        ("T0x7f3c", Kind.THREAD),
        ("T0:1234", Kind.THREAD),
        ("T12", Kind.FRAME),
    ],
)
def test_processes_and_threads_keep_their_text(text: str, kind: Kind) -> None:
    assert parse_frame(text) == Frame(kind, text)


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        ("torch/nn/module.py(1518): _call", Frame(PYTHON, "_call", "torch/nn/module.py", 1518)),
        ("<string>(2): __init__", Frame(PYTHON, "__init__", "<string>", 2)),
        ("matrix(12): 3", Frame(Kind.FRAME, "matrix(12): 3")),
        ("<built-in method run>", Frame(PYTHON, "<built-in method run>")),
        (
            "<method 'append' of 'list' objects>",
            Frame(PYTHON, "<method 'append' of 'list' objects>"),
        ),
        ("nn.Module: Linear_0", Frame(PYTHON, "nn.Module: Linear_0")),
    ],
)
def test_pytorch(text: str, frame: Frame) -> None:
    assert parse_frame(text) == frame


@pytest.mark.parametrize(
    "text", ["/a/b.py:f:12", "/a/b.py:f@12", "/a/b.py:12@f", "/a/b.py(12): f", "f (/a/b.py:12)"]
)
def test_one_place_in_the_ways_of_five_tools(text: str) -> None:
    assert parse_frame(text) == Frame(PYTHON, "f", "/a/b.py", 12)


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        ("C:\\a\\b.py:f:12", Frame(PYTHON, "f", "C:\\a\\b.py", 12)),
        ("<string>:<module>:1", Frame(PYTHON, "<module>", "<string>", 1)),
        ("std::vector:push:12", Frame(Kind.FRAME, "std::vector:push:12")),
        ("py::main:/run/job.py", Frame(PYTHON, "main", "/run/job.py")),
        ("py::main", Frame(Kind.FRAME, "py::main")),
        ("do_syscall_64_[k]", Frame(Kind.NATIVE, "do_syscall_64_[k]")),
        ("Ljava/lang/String;::length_[j]", Frame(Kind.FRAME, "Ljava/lang/String;::length_[j]")),
        ("Interpreter_[i]", Frame(Kind.FRAME, "Interpreter_[i]")),
    ],
)
def test_other_tools(text: str, frame: Frame) -> None:
    assert parse_frame(text) == frame


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("GPU 0 NVIDIA H100", Kind.DEVICE),
        ("GPU 0", Kind.DEVICE),
        ("GPU 0x", Kind.FRAME),
        ("stream 7", Kind.STREAM),
        ("rank 3", Kind.RANK),
        (NO_LAUNCH, Kind.LAUNCH),
        ("cudaLaunchKernel", Kind.LAUNCH),
        ("cudaLaunchKernel_v7000", Kind.LAUNCH),
        ("cuLaunchKernelEx", Kind.LAUNCH),
        ("hipGraphLaunch", Kind.LAUNCH),
        ("cudaFuture::wait", Kind.FRAME),
        ("custom", Kind.FRAME),
        ("memcpy HtoD", Kind.MEMCPY),
        ("Memcpy DtoD (Device -> Device)", Kind.MEMCPY),
        ("memcpy", Kind.FRAME),  # a function of every C library
        ("CUDA graph 3", Kind.GRAPH),
    ],
)
def test_our_own_exports(text: str, kind: Kind) -> None:
    assert parse_frame(text) == Frame(kind, text)


@pytest.mark.parametrize("text", ["", " ", "\t"])
def test_nothing_is_called_something(text: str) -> None:
    assert parse_frame(text) == Frame(Kind.FRAME, NO_NAME)


@given(st.text(alphabet="aP1 .:()<>[]@_-py\ud800\x00é", max_size=30))
def test_a_frame_says_all_that_its_text_says(text: str) -> None:
    frame = parse_frame(text)
    said = frame.name + frame.file + (str(frame.line) if frame.line else "") + frame.get("module")
    if frame.name != NO_NAME:
        assert set(text) - set("0 :()@py") <= set(said)
        assert frame.name in text and frame.file in text


@pytest.mark.parametrize(
    "piece", [":1@", "(1): ", " (", "a:", "<", "py::", "memcpy ", "P1", ".py:"]
)
def test_time_is_linear_in_the_length(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    begin = time.process_time()
    for hostile in (text, text + ")", text + ":1", text + "\0"):
        parse_frame(hostile)
    assert time.process_time() - begin < 2  # 0.1 s; quadratic would be hours
