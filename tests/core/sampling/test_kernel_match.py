"""Kernels are found by their names, whoever spells them, and never by those of another."""

from __future__ import annotations

import pytest

from flame.core.loading.many import load
from flame.core.model.frames import Frame, Kind
from flame.core.names.cuda import demangle, kernel_base
from flame.core.sampling.kernel_match import KernelIndex, KernelMatch
from tests.conftest import NSYS_TRACES, TRACES

MANGLED = "_Z4gemmILi128ELb1EEvPfPKfm"
OURS = "void gemm<128, true>(float*, float const*, unsigned long)"
THEIRS = "void gemm<(int)128, (bool)1>(float *, const float *, unsigned long)"


def kernel(full: str, mangled: str = "") -> Frame:
    names = (("demangled", full), ("mangled", mangled))
    extra = tuple(pair for pair in names if pair[1])
    return Frame(Kind.KERNEL, kernel_base(full), extra=extra)


def only(name: str) -> Frame:
    """A kernel of which a trace has nothing but the base name."""
    return Frame(Kind.KERNEL, name)


def match(name: str, *frames: Frame) -> KernelMatch:
    return KernelIndex(dict(enumerate(frames, 5))).match(name)


SURE = KernelMatch((5,))


@pytest.mark.parametrize("name", [MANGLED, OURS, THEIRS, "gemm"])
@pytest.mark.parametrize(
    "frame", [kernel(OURS), kernel(THEIRS, MANGLED), kernel(OURS, MANGLED), only("gemm")]
)
def test_every_spelling_finds_every_other(name: str, frame: Frame) -> None:
    assert match(name, frame) == SURE


@pytest.mark.parametrize(
    ("name", "frame"),
    [
        ("void a::k<(unsigned int)4>(T1 *)", "void a::k<4u>(float*)"),
        ("void a::k<(unsigned long)4, (bool)0>(int)", "void a::k<4ul, false>(int)"),
        ("void a::k<(int)-1>()", "void a::k<-1>()"),
        ("void <unnamed>::k<float>(float)", "void (anonymous namespace)::k<float>(float)"),
        ("k(int, int)", "k(int,int)"),
        ("void k<std::pair<int, int> >(int)", "void k<std::pair<int, int>>(int)"),
    ],
)
def test_how_demanglers_differ(name: str, frame: str) -> None:
    assert match(name, kernel(frame)) == match(frame, kernel(name)) == SURE


@pytest.mark.parametrize(
    ("name", "frame"),
    [
        ("void gemm<64>(float *)", "void gemm<128>(float *)"),
        ("void gemm<float>(float *)", "void gemm<double>(float *)"),
        ("a::gemm(float *)", "b::gemm(float *)"),
        ("void k<(anonymous namespace)::A>(int)", "void k<(anonymous namespace)::B>(int)"),
    ],
)
def test_other_arguments_are_another_kernel(name: str, frame: str) -> None:
    assert match(name, kernel(frame)).frames == ()
    assert match(demangle(MANGLED), kernel(frame, "_Z3foov")).frames == ()


def test_a_mangled_name_that_is_not_there_is_missing() -> None:
    assert match(MANGLED, kernel("void gemm<64, true>(float*)")) == KernelMatch()
    assert match("nothing_like_it", kernel(OURS)) == KernelMatch()


def test_a_demangled_name_that_fits_nothing_is_unsure_of_its_base() -> None:
    assert match("void gemm<64>(float *)", kernel(OURS), kernel("k()")) == KernelMatch(unsure=(5,))


def test_a_base_name_of_several_kernels_is_unsure() -> None:
    frames = [kernel("void gemm<1>(int)"), kernel("void gemm<2>(int)"), kernel("k()")]
    assert match("gemm", *frames) == KernelMatch(unsure=(5, 6))
    assert match("k", *frames) == KernelMatch((7,))


def test_overloads_are_told_apart_by_parameters() -> None:
    frames = [kernel("k(float *)"), kernel("k(double *)")]
    assert match("k(double*)", *frames) == KernelMatch((6,))
    assert match("k(T1)", *frames) == KernelMatch(unsure=(5, 6))


def test_one_name_for_two_symbols_is_unsure() -> None:
    frames = [kernel("k(int)", "_ZN12_GLOBAL__N_11kEi"), kernel("k(int)", "_Z1ki")]
    assert match("k(int)", *frames) == KernelMatch(unsure=(5, 6))
    assert match("_Z1ki", *frames) == KernelMatch((6,))


def test_several_frames_of_one_kernel_are_all_meant() -> None:
    assert match(MANGLED, kernel(OURS, MANGLED), kernel(THEIRS, MANGLED)) == KernelMatch((5, 6))


@pytest.mark.parametrize("name", ["", "()", "<", "operator()", "_Z", "x" * 50_000, "((((", "a b"])
def test_strange_names(name: str) -> None:
    assert match(name, kernel(OURS), only("other")) == KernelMatch()


@pytest.mark.parametrize("name", NSYS_TRACES)
def test_kernels_of_real_traces_are_found_by_all_their_names(name: str) -> None:
    """Names of another demangler than the trace's may find nothing, but never another kernel."""
    frames = load(TRACES / "nsys" / name).frames
    kernels = {at: one for at, one in enumerate(frames.frames) if one.kind == Kind.KERNEL}
    known = KernelIndex(kernels)
    for at, frame in kernels.items():
        if mangled := frame.get("mangled"):
            assert known.match(mangled).frames == (at,)
        for full in (frame.get("demangled"), demangle(mangled)):
            found = known.match(full)
            assert found.frames == (at,) or not found.frames
            assert at in (*found.frames, *found.unsure) or not full
