"""What the reader makes of each kind of event of a PyTorch profiler trace."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from flame.core.errors import InputError
from flame.core.model.frames import Frame, Kind
from flame.core.model.launches import UNKNOWN, LaunchConfig
from flame.core.model.meta import Device, Process, Thread
from flame.core.options import LoadOptions, silent
from flame.core.readers.kineto import reader as kineto
from flame.core.readers.kineto.vocabulary import memory_of
from flame.core.readers.signs.kineto import is_chrome_trace
from tests.core.readers.kineto.conftest import Read, frames
from tests.support.writers.kinetofile import KinetoFile


def refused(path: Path) -> str:
    with pytest.raises(InputError) as error:
        kineto.read_kineto(path, LoadOptions(), silent)
    return str(error.value).removeprefix(f"{path}: ")


def test_kernel_is_an_activity_by_its_base_name(trace: KinetoFile, read: Read) -> None:
    name = "void at::native::reduce_kernel<512, 1>(float*)"
    trace.kernel(name, 1001, 3002, correlation=5, device=2, stream=9)
    raw = read(trace)
    work = raw.activities
    assert (work.start.tolist(), work.end.tolist()) == ([1001], [3002])
    assert (work.correlation.tolist(), work.stream.tolist()) == ([5], [9])
    assert frames(raw, work.frame) == [
        Frame(Kind.KERNEL, "reduce_kernel", extra=(("demangled", name),))
    ]
    assert raw.devices == (Device(2),)
    assert (work.device.tolist(), work.process.tolist()) == ([0], [-1])


def test_mangled_kernel_keeps_its_symbol(trace: KinetoFile, read: Read) -> None:
    trace.kernel("_Z3addPf", 0, 1)
    (frame,) = frames(read(trace), read(trace).activities.frame)
    assert frame.name == "add"
    assert (frame.get("demangled"), frame.get("mangled")) == ("add(float*)", "_Z3addPf")


def test_copies_and_sets_are_named_as_nsight_does(trace: KinetoFile, read: Read) -> None:
    trace.memcpy(0, 1)
    trace.memcpy(1, 2, name="Memcpy DtoD (Device -> Device)")
    trace.memcpy(2, 3, name="copy")
    trace.memset(3, 4)
    raw = read(trace)
    assert [frame.name for frame in frames(raw, raw.activities.frame)] == [
        *("memcpy HtoD", "memcpy DtoD", "memcpy", "memset")
    ]
    assert raw.activities.kind.tolist() == [Kind.MEMCPY] * 3 + [Kind.MEMSET]


def test_launch_geometry_and_bytes_stand_beside_the_activities(
    trace: KinetoFile, read: Read
) -> None:
    geometry = {"registers_per_thread": 32, "shared_memory": 2048}
    trace.kernel("a", 0, 1, grid=(4, 2, 1), block=(128, 1, 1), **geometry)
    trace.memcpy(1, 2, size=4096)
    trace.kernel("b", 2, 3, grid=(4, 2, 1), block=(128, 1, 1), **geometry)
    raw = read(trace)
    assert raw.launches_builder is not None
    launches = raw.launches_builder()
    kernel = LaunchConfig((4, 2, 1), (128, 1, 1), registers=32, shared=2048)
    copy = LaunchConfig(source="pinned", target="device")
    assert {*launches.configs} == {kernel, copy}
    rows = zip(raw.activities.start, launches.config, launches.bytes, strict=True)
    by_start = [(launches.configs[config], int(size)) for _, config, size in sorted(rows)]
    assert by_start == [(kernel, UNKNOWN), (copy, 4096), (kernel, UNKNOWN)]


@pytest.mark.parametrize(
    ("name", "source", "target"),
    [
        ("Memcpy HtoD (Pageable -> Device)", "pageable", "device"),
        ("Memcpy DtoH (Device -> Pinned)", "device", "pinned"),
        ("Memset (Device)", None, "device"),
        ("Memcpy HtoD (Elsewhere -> Device)", None, "device"),
        ("Memcpy HtoD", None, None),
    ],
)
def test_the_memory_of_copies_is_in_their_names(
    name: str, source: str | None, target: str | None
) -> None:
    assert memory_of(name) == LaunchConfig(source=source, target=target)


@pytest.mark.parametrize(
    ("category", "name"),
    [
        ("cuda_runtime", "cudaLaunchKernel"),
        ("cuda_driver", "cuLaunchKernelEx"),
        ("hip_runtime", "hipGraphLaunch"),
        ("xpu_runtime", "urEnqueueKernelLaunch"),
        ("Runtime", "cudaMemcpyAsync"),
    ],
)
def test_runtime_and_driver_calls_are_calls(
    trace: KinetoFile, read: Read, category: str, name: str
) -> None:
    trace.runtime(7, 1000, 2500, name, category=category)
    raw = read(trace)
    assert (raw.calls.start.tolist(), raw.calls.end.tolist()) == ([1000], [2500])
    assert raw.calls.correlation.tolist() == [7]
    assert frames(raw, raw.calls.frame) == [Frame(Kind.LAUNCH, name)]
    assert raw.threads == (Thread(0, 1),)
    assert raw.processes == (Process(100),)


def test_categories_of_2021_are_known(trace: KinetoFile, read: Read) -> None:
    for category in ("Operator", "Kernel", "Memcpy", "Memset"):
        trace.span(category, "x", 0, 1, (0, "stream 7"), {})
    raw = read(trace)
    assert (len(raw.ranges.start), raw.activities.stream.tolist()) == (1, [7, 7, 7])


def test_operators_and_annotations_are_ranges_with_shapes(trace: KinetoFile, read: Read) -> None:
    trace.annotation("ProfilerStep#3", 0, 100)
    trace.op("aten::mm", 10, 20, Input_Dims=[[16, 2880], [], [[1, 2], []]])
    trace.op("aten::zeros", 20, 30, Input_Dims=[[], []])
    raw = read(trace)
    assert frames(raw, raw.ranges.frame) == [
        Frame(Kind.NVTX, "ProfilerStep"),
        Frame(Kind.NVTX, "aten::mm", extra=(("shapes", "[[16, 2880], [], [[1, 2], []]]"),)),
        Frame(Kind.NVTX, "aten::zeros"),
    ]
    assert raw.last_time == 100
    assert raw.operators is None


def test_shapes_are_one_text_however_the_file_is_indented(
    trace: KinetoFile, tmp_path: Path
) -> None:
    trace.op("aten::mm", 10, 20, Input_Dims=[[16, 2880], []])
    path = tmp_path / "trace.json"
    path.write_text(trace.text(indent=4))
    raw = kineto.read_kineto(path, LoadOptions(), silent)
    assert frames(raw, raw.ranges.frame)[0].get("shapes") == "[[16, 2880], []]"


def test_raw_names_stay_as_they_are(trace: KinetoFile, read: Read) -> None:
    trace.annotation("ProfilerStep#3", 0, 100)
    raw = read(trace, LoadOptions(nvtx_names="raw"))
    assert frames(raw, raw.ranges.frame) == [Frame(Kind.NVTX, "ProfilerStep#3")]


def test_collective_and_triton_facts_are_details(trace: KinetoFile, read: Read) -> None:
    facts = {"Collective_name": "allreduce", "dtype": "BFloat16", "In_msg_nelems": 4096}
    trace.op("record_param_comms", 0, 1, **facts, Group_size=8)
    event = trace.op("triton_add", 1, 2)
    event["args"] |= {"kernel_backend": "triton", "num_warps": 4, "num_stages": 1}
    raw = read(trace)
    assert [frame.get("detail") for frame in frames(raw, raw.ranges.frame)] == [
        "allreduce, 4096 BFloat16, 8 ranks",
        "triton, 4 warps, 1 stages",
    ]


def test_steps_are_kept_with_their_numbers(trace: KinetoFile, read: Read) -> None:
    trace.annotation("ProfilerStep#4", 200, 300)
    trace.annotation("ProfilerStep#3", 100, 200)
    trace.annotation("ProfilerStep#3", 150, 190, tid=2)
    steps = read(trace).steps
    assert (steps.number.tolist(), steps.process.tolist()) == ([3, 4], [0, 0])
    assert (steps.start.tolist(), steps.end.tolist()) == ([100, 200], [200, 300])


def test_steps_count_from_the_first_time_of_the_trace(trace: KinetoFile, tmp_path: Path) -> None:
    trace.op("aten::mm", 70, 90)
    trace.annotation("ProfilerStep#3", 100, 200)
    path = trace.write(tmp_path / "trace.json")
    raw = kineto.read_kineto(path, LoadOptions(), silent)
    assert raw.ranges.start.tolist() == [0, 30]
    assert (raw.steps.start.tolist(), raw.steps.end.tolist()) == ([30], [130])


@pytest.mark.parametrize(
    ("name", "frame"),
    [
        ("model/x.py(117): forward", Frame(Kind.PYTHON, "forward", "model/x.py", 117)),
        ("<string>(1): <module>", Frame(Kind.PYTHON, "<module>", "<string>", 1)),
        ("/a (b)/c.py(3): <lambda>", Frame(Kind.PYTHON, "<lambda>", "/a (b)/c.py", 3)),
        ("nn.Module: Linear_3", Frame(Kind.PYTHON, "nn.Module: Linear_3")),
        (
            "<built-in method to of Tensor object at 0x7d67180cc190>",
            Frame(Kind.PYTHON, "<built-in method to of Tensor object>"),
        ),
    ],
)
def test_python_functions_have_file_and_line(
    trace: KinetoFile, read: Read, name: str, frame: Frame
) -> None:
    trace.python(name, 0, 10, call=5, caller=None)
    raw = read(trace)
    assert frames(raw, raw.functions.frame) == [frame]
    assert (raw.functions.call.tolist(), raw.functions.caller.tolist()) == ([5], [0])


def test_call_stacks_of_operators_are_stacks_outermost_first(trace: KinetoFile, read: Read) -> None:
    trace.op("a", 0, 1, Call_stack="in.py(3): f;out.py(7): main")
    trace.op("b", 1, 2, Call_stack="")
    trace.op("c", 2, 3, Call_stack="in.py(3): f;out.py(7): main")
    raw = read(trace)
    assert raw.operators is not None
    first, second, third = raw.operators.python.tolist()
    assert (second, third) == (0, first)
    path = raw.stacks.build().path(first)
    assert [raw.frames[frame].name for frame in path] == ["main", "f"]
    assert raw.operators.forward.tolist() == [-1] * 3


def test_gpu_annotations_are_ranges_of_their_stream(trace: KinetoFile, read: Read) -> None:
    trace.kernel("a", 0, 1, device=1)
    trace.gpu_annotation("forward", 0, 50, device=3, stream="stream 9")
    raw = read(trace)
    ranges = raw.gpu_ranges
    assert [device.id for device in raw.devices] == [1, 3]
    assert (ranges.device.tolist(), ranges.stream.tolist()) == ([1], [9])
    assert (ranges.start.tolist(), ranges.end.tolist()) == ([0], [50])
    assert frames(raw, ranges.frame) == [Frame(Kind.NVTX, "forward")]


def test_events_without_a_time_are_counted(trace: KinetoFile, read: Read) -> None:
    for spoilt in (None, 1e300, -1e300):
        trace.op("a", 0, 1)["ts"] = spoilt
    trace.op("b", 0, 1)["dur"] = -5
    trace.kernel("k", 0, 1)["dur"] = 1e300
    del trace.op("instant", 7000, 8000)["dur"]
    raw = read(trace)
    assert (raw.ranges.start.tolist(), raw.ranges.end.tolist()) == ([7000], [7000])
    assert len(raw.activities.start) == 0
    assert raw.warnings == [
        "4 operators have no time that makes sense: left out",
        "1 GPU activity has no time that makes sense: left out",
    ]


def test_events_of_other_kinds_are_passed_over(trace: KinetoFile, read: Read) -> None:
    trace.op("a", 0, 1)
    trace.span("overhead", "Activity Buffer Request", 0, 9, (-1, 0), {})
    trace.event(ph="i", cat="cpu_instant_event", name="[memory]", pid=1, tid=1, ts=5)
    trace.event(ph="i", cat="cpu_op", name="[memory]", pid=1, tid=1, ts=5)
    trace.span("Trace", "PyTorch Profiler (0)", 0, 9, ("Spans", "PyTorch Profiler"), {})
    raw = read(trace)
    assert (len(raw.ranges.start), raw.warnings, len(raw.threads)) == (1, [], 1)


def test_damage_and_cut_are_said(trace: KinetoFile, tmp_path: Path) -> None:
    for number in range(3):
        trace.op(f"op {number}", number, number + 1)
    path = tmp_path / "trace.json"
    path.write_text(trace.text().replace('"op 1"', '["op 1"]')[:-2])
    raw = kineto.read_kineto(path, LoadOptions(), silent)
    assert raw.warnings == [
        f"cut off at byte {path.stat().st_size:,}: everything before it is shown",
        "1 damaged event: left out",
    ]
    packed = tmp_path / "trace.json.gz"
    packed.write_bytes(gzip.compress(path.read_bytes())[:-30])
    warning = kineto.read_kineto(packed, LoadOptions(), silent).warnings[0]
    assert warning.endswith("of the unpacked trace: everything before it is shown")


def test_chrome_trace_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "chrome.json"
    event = {"ph": "X", "cat": "devtools.timeline", "name": "Paint", "pid": 1, "tid": 1, "ts": 1}
    path.write_text(json.dumps({"traceEvents": [event]}))
    assert refused(path).startswith("a Chrome trace, but not of the PyTorch profiler")


def test_trace_cut_off_before_its_events_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text('{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "ker')
    assert refused(path).startswith("cut off at byte 60, before any event")


def test_traces_are_known_by_their_beginning(trace: KinetoFile) -> None:
    assert is_chrome_trace(trace.text().encode())
    assert is_chrome_trace(b'\xef\xbb\xbf [ {"ph": "X"')
    assert is_chrome_trace(b'{"distributedInfo": {"rank": 1}, "metadata": "' + b"x" * 999)
    assert not is_chrome_trace(b'{"$schema": "https://www.speedscope.app/file-format-schema"}')
    assert not is_chrome_trace(b"")
    assert not is_chrome_trace(b'main;"traceEvents": 5')
