"""Random small PyTorch profiler traces: scripts of calls to `KinetoFile`.

Times are small numbers, so that equal starts, touching ends and crossings are common; a script is
written at some offset. So that tests need no opinion on what nobody can know, forward operators
run on one thread of a process, a step has one event, and no two GPU activities start at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.support.writers.kinetofile import KinetoFile

Step = tuple[str, dict[str, Any]]

KERNELS = {
    "gemm": ("gemm", "gemm", "gemm"),
    "void ns::gemm<float>(int)": ("gemm", "void ns::gemm<float>(int)", "void ns::gemm<float>(int)"),
    "_Z4gemmIfEvi": ("gemm", "void gemm<float>(int)", "_Z4gemmIfEvi"),
    "softmax": ("softmax", "softmax", "softmax"),
}
"""Names as recorded: base, demangled and mangled names."""
RANGES = ("aten::mm", "aten::linear", "aten::mm, seq = 5", "layer [1]", "")
FUNCTIONS = ("a.py(3): f", "a.py(7): f", "b.py(3): f", "g", "<built-in method g at 0x7F0b>")
STACKS = ("", "", "inner.py(3): f;outer.py(7): <module>", "a.py(3): f")
SHAPES: tuple[list[list[int]], ...] = ([], [[4, 2], []], [[8]], [[], []])
FORWARD_TID = 1
STEPS = 3

# Sampling is even: what is named more often is met more often.
pids = st.sampled_from([100, 100, 100, 100, "100", 101])
tids = st.sampled_from([1, 1, 1, "1", 2])
moments = st.one_of(st.integers(0, 3), st.integers(0, 12))
lengths = st.one_of(st.integers(0, 3), st.integers(0, 12))
long_lengths = st.one_of(st.integers(2, 12), lengths)
correlations = st.sampled_from([1, 2, 3, 1, 2, 3, 0, None])


@dataclass(frozen=True)
class Script:
    """What to write, all times shifted by ``offset``."""

    offset: int
    steps: tuple[Step, ...]

    def write(self, path: Path, origin: int = 0) -> Path:
        """Write the trace, whose clock is 0 at the Unix time ``origin`` ns, and return its path."""
        file = KinetoFile()
        for method, values in self.steps:
            times = {key: values[key] + self.offset for key in ("start", "end")}
            getattr(file, method)(**{**values, **times})
        file.top["baseTimeNanoseconds"] = origin
        return file.write(path)


@st.composite
def timed(draw: st.DrawFn, /, method: str, length: st.SearchStrategy[int], **fields: Any) -> Step:
    """A step with a start, an end, and the drawn ``fields``."""
    start = draw(moments)
    values = {key: draw(field) for key, field in fields.items()}
    return method, {"start": start, "end": start + draw(length), **values}


def _host(
    method: str, length: st.SearchStrategy[int] = long_lengths, **fields: Any
) -> st.SearchStrategy[Step]:
    return timed(method, length, **{"pid": pids, "tid": tids, **fields})


def _gpu(method: str, **fields: Any) -> st.SearchStrategy[Step]:
    places = {"device": st.sampled_from([0, 0, 1]), "stream": st.sampled_from([7, 7, 20])}
    return timed(method, lengths, **places, **fields)


_op = _host(
    "op",
    name=st.sampled_from(RANGES),
    Input_Dims=st.sampled_from(SHAPES),
    Call_stack=st.sampled_from(STACKS),
)
_numbers = st.integers(0, 3)
_forward = _host(
    "op",
    name=st.sampled_from(("aten::linear", "aten::addmm", "aten::t")),
    tid=st.just(FORWARD_TID),
    Sequence_number=_numbers,
    Fwd_thread_id=st.just(0),
    Input_Dims=st.sampled_from(SHAPES),
)
_backward = _host(
    "op",
    name=st.sampled_from(("AddmmBackward0", "TBackward0")),
    tid=st.sampled_from([1, 2, 2, 2]),
    Sequence_number=_numbers,
    Fwd_thread_id=st.sampled_from([1, 1, 2]),
)
_annotation = _host(
    "annotation", name=st.sampled_from(("forward", "layer [1]", "ProfilerStep#2 of 3"))
)
_calls = _host(
    "runtime",
    lengths,
    correlation=correlations,
    name=st.sampled_from(["cudaLaunchKernel", "cudaMemcpyAsync", "hipGraphLaunch"]),
    category=st.sampled_from(["cuda_runtime", "cuda_runtime", "cuda_driver", "Runtime"]),
)
_functions = _host(
    "python",
    name=st.sampled_from(FUNCTIONS),
    call=st.integers(0, 8),
    caller=st.one_of(st.none(), st.integers(0, 8)),
)
_homeless = timed(
    "python", long_lengths, name=st.just("thread.py(1): run"), pid=st.just(0), tid=st.just(0)
)
_kernels = _gpu("kernel", name=st.sampled_from(list(KERNELS)), correlation=correlations)
_copies = st.one_of([_gpu(method, correlation=correlations) for method in ("memcpy", "memset")])
_lanes = _gpu("gpu_annotation", name=st.sampled_from(("forward", "aten::mm")))

_work = st.one_of(_kernels, _kernels, _copies)
_others = st.one_of(
    _op,
    _op,
    _forward,
    _backward,
    _annotation,
    _calls,
    _calls,
    _functions,
    _functions,
    _homeless,
    _lanes,
)


@st.composite
def _marked(draw: st.DrawFn) -> list[Step]:
    """Profiler steps of two processes, each once."""
    chosen = draw(
        st.lists(
            st.tuples(st.integers(1, STEPS), st.sampled_from([100, 101])), max_size=3, unique=True
        )
    )
    return [
        draw(
            timed(
                "annotation", long_lengths, name=st.just(f"ProfilerStep#{number}"), pid=st.just(pid)
            )
        )
        for number, pid in chosen
    ]


@st.composite
def _training(draw: st.DrawFn) -> list[Step]:
    """Forward operators of one number, one inside the other, and work of their backward pass."""
    number, start, length = draw(_numbers), draw(moments), draw(st.integers(0, 6))
    within = draw(st.integers(0, 2))
    spans = {
        "aten::linear": (start, start + length),
        "aten::addmm": (start, start + length + within),
    }
    forward = {"tid": FORWARD_TID, "Sequence_number": number, "Fwd_thread_id": 0}
    steps: list[Step] = [
        ("op", {"name": name, "start": begin, "end": end, **forward})
        for name, (begin, end) in spans.items()
    ]
    on = {"tid": draw(st.sampled_from([1, 2]))}
    begin = draw(st.integers(0, 20))
    known = {"Sequence_number": number, "Fwd_thread_id": 1, **on}
    steps.append(("op", {"name": "AddmmBackward0", "start": begin, "end": begin + 9, **known}))
    call = begin + draw(st.integers(0, 9))
    steps.append(("runtime", {"correlation": 9, "start": call, "end": call + 2, **on}))
    steps.append(("kernel", {"name": "gemm", "correlation": 9, "start": 50, "end": 55}))
    return steps


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    """Traces of up to three processes and two GPUs."""
    work = draw(st.lists(_work, max_size=6, unique_by=lambda step: step[1]["start"]))
    steps = work + draw(st.lists(_others, min_size=1, max_size=12)) + draw(_marked())
    steps += draw(st.one_of(st.just([]), _training()))
    offset = draw(st.sampled_from([0, 0, -7, 10**6, 1_428_625_731_896_179]))
    return Script(offset, tuple(draw(st.permutations(steps))))
