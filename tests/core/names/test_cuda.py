"""Base names of kernels, against hand-written cases and Nsight Systems' own short names."""

from __future__ import annotations

import builtins
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flame.core.names import cuda as kernel_names
from flame.core.names.cuda import demangle, kernel_base
from tests.conftest import NSYS_TRACES


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("add_one(const float *, float *, int)", "add_one"),
        ("void splitKreduce_kernel<(int)32, double>(T1<T6>, const T4 *)", "splitKreduce_kernel"),
        ("void at::native::reduce_kernel<512, 1, at::Op<float, at::F<long>>>(T3)", "reduce_kernel"),
        ("void at::native::elementwise_add<float>(float*, float*)", "elementwise_add"),
        (
            "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nt_align1>(T1::Params)",
            "Kernel2",
        ),
        (
            "void cub::DeviceScanInitKernel<cub::State<float, (bool)1>>(T1, int)",
            "DeviceScanInitKernel",
        ),
        ("cutlass::Kernel2", "Kernel2"),
        ("void kernel<float>", "kernel"),
        ("foo$241(Array<float, 1, C, mutable, aligned>)", "foo$241"),
        ("cudapy::__main__::add[abi:v1][abi:cw51c](Array<float, 1, C>)", "add"),
        # return types
        ("std::enable_if<(8 > 4), void>::type ns::fill<float>(float*)", "fill"),
        ("std::vector<int, std::allocator<int> > make<int>(int)", "make"),
        ("float const* ns::get<float>(int)", "get"),
        ("float *ns::get<float>(int)", "get"),
        ("decltype (a+b) sum<int>(int)", "sum"),
        # namespaces without a name
        ("<unnamed>::pointwise_f0(<unnamed>::Tensor<float, (int)3>)", "pointwise_f0"),
        ("void at::native::<unnamed>::cat<at::<unnamed>::Opaque<4>>(T1 *)", "cat"),
        ("void (anonymous namespace)::softmax<float>(float*)", "softmax"),
        ("ns::(anonymous namespace)::run((anonymous namespace)::P)", "run"),
        # lambdas
        (
            "void k<(int)4, at::f(at::Base &)::[lambda() (instance 1)]::operator ()() const::"
            "[lambda(float) (instance 1)], std::array<char *, 2>>(int, T2, T3)",
            "k",
        ),
        ("f(int)::[lambda(int) (instance 1)]", "[lambda(int) (instance 1)]"),
        ("f(int) const::{lambda(int, char)#1}", "{lambda(int, char)#1}"),
        ("void run<f()::{lambda(int)#1}>(f()::{lambda(int)#1})", "run"),
        ("f()::'lambda'(int)::operator()(int) const", "operator()"),
        # operators
        ("void F::operator()<int>(int) const", "operator()"),
        ("F::operator ()(int) const", "operator ()"),
        ("bool ns::operator< <int>(A<int>, A<int>)", "operator<"),
        ("std::ostream& ns::operator<< <char>(A<int>)", "operator<<"),
        ("bool ns::operator>(A<int>, A<int>)", "operator>"),
        ("bool ns::operator<=>(A<int>, A<int>)", "operator<=>"),
        ("int& V<int>::operator[](unsigned long)", "operator[]"),
        ("A* P<A>::operator->() const", "operator->"),
        ("A& A::operator*()", "operator*"),
        ("A::operator,(int)", "operator,"),
        ("A::operator bool() const", "operator bool"),
        ("A::operator std::vector<unsigned long>() const", "operator std::vector<unsigned long>"),
        ("operator new[](unsigned long)", "operator new[]"),
        ("my_operator(int)", "my_operator"),
        # what trails
        ("void foo<int>(int) [clone .isra.0]", "foo"),
        ("foo(int) [clone .constprop.0] [clone .part.1]", "foo"),
        ("foo [clone .isra.0]", "foo"),
        ("foo(int) (.isra.0)", "foo"),
        ("A<int>::run(int) const &", "run"),
        # comparisons and shifts among template arguments
        ("void k<(4>3), (N<2)>(int)", "k"),
        ("void k<((sizeof (T))<=(8)), (1>>2), (a->b)>(int)", "k"),
        ("void k<&A::operator<, &(B::operator>>)>(int)", "k"),
    ],
)
def test_base_name(name: str, base: str) -> None:
    assert kernel_base(name) == base


@pytest.mark.parametrize(
    "name",
    [
        "",
        "triton_poi_fused_add_mul_0",
        "ampere_sgemm_128x128_nn",
        "_Z7add_onePKfPfi",
        "loop_add_fusion.3",
        "two words",
        "Memcpy HtoD (Pageable -> Device)",
        "void (*get<int>(int))(float)",
        # brackets that do not pair
        "foo<int(int)",
        "foo(int",
        "foo>(int)",
        "foo(int))",
        "foo[(])",
        "a->b>",
        "::",
        "*",
        "()",
    ],
)
def test_what_is_no_signature_stays_as_it_is(name: str) -> None:
    assert kernel_base(name) == name


FRAGMENTS = st.one_of(
    st.sampled_from(["<", ">", "(", ")", "[", "]", "{", "}", "::", " ", "*", "&", ",", "->", "'"]),
    st.sampled_from(["operator", "operator()", "operator<", "operator<< ", "a", "b_1", "$", "-"]),
    st.sampled_from(["void", "const", "<unnamed>", "(anonymous namespace)", "[abi:x]"]),
    st.sampled_from(["[lambda(int) (instance 1)]", " [clone .isra.0]"]),
)


@given(st.one_of(st.text(), st.lists(FRAGMENTS, max_size=30).map("".join)))
@example("operator a::b()")
@example("*a<b>")
def test_base_name_is_part_of_the_name_and_its_own_base_name(name: str) -> None:
    base = kernel_base(name)
    assert base in name
    assert bool(base) == bool(name)
    assert kernel_base(base) == base


WORDS = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True).filter(
    lambda word: "operator" not in word
)
TYPES = st.recursive(
    WORDS,
    lambda inner: st.one_of(
        st.builds("{}<{}, {}>".format, WORDS, inner, inner),
        st.builds("{}({})::[lambda({}) (instance 2)]".format, WORDS, inner, inner),
        st.builds("ns::(anonymous namespace)::{}*".format, inner),
        st.builds("(({})<(4))".format, inner),
    ),
    max_leaves=8,
)


@given(TYPES, WORDS, WORDS, TYPES, TYPES)
def test_base_name_of_a_generated_signature(
    returned: str, namespace: str, name: str, template: str, parameter: str
) -> None:
    signature = f"{returned}<int> {namespace}::<unnamed>::{name}<{template}>({parameter})"
    assert kernel_base(signature) == name


@pytest.mark.parametrize(
    "unit",
    [
        "<",
        "()",
        "operator<",
        "operator ",
        "a::",
        "[abi:",
        "*",
        "&operator ",
        " ",
        "<(a<b)>",
        "a(<b)",
    ],
)
def test_half_a_megabyte_takes_linear_time(unit: str) -> None:
    name = unit * (512 * 1024 // len(unit))
    started = time.thread_time()
    kernel_base(name)
    # Measured 0.1–1 s; anything quadratic takes hours.
    assert time.thread_time() - started < 20


def recorded_names(path: Path) -> Iterator[tuple[str, str, str | None]]:
    """(demangled, short, mangled) of each kernel of a trace whose name resolves."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        columns = {
            row[1] for row in connection.execute("PRAGMA table_info(CUPTI_ACTIVITY_KIND_KERNEL)")
        }
        if not columns >= {"demangledName", "shortName"}:
            return
        mangled = "k.mangledName" if "mangledName" in columns else "NULL"
        yield from connection.execute(
            f"""SELECT DISTINCT d.value, s.value, m.value FROM CUPTI_ACTIVITY_KIND_KERNEL k
                JOIN StringIds d ON d.id = k.demangledName JOIN StringIds s ON s.id = k.shortName
                LEFT JOIN StringIds m ON m.id = {mangled}"""
        )


@pytest.mark.parametrize("trace", NSYS_TRACES)
def test_base_name_is_the_short_name_of_nsight_systems(
    trace: str, nsys_trace: Callable[[str], Path]
) -> None:
    for demangled, short, mangled in recorded_names(nsys_trace(trace)):
        assert kernel_base(demangled) == short
        if mangled is not None:
            assert kernel_base(demangle(mangled)) == short


def test_demangle() -> None:
    assert demangle("_Z7add_onePKfPfi") == "add_one(float const*, float*, int)"


@pytest.mark.parametrize(
    "symbol",
    [
        "",
        "add_one",
        "_Z",
        "_Zgarbage",
        "_Z1f\0junk",
        "_Z1\ud800v",
        "_Z1év",  # one byte of a two-byte character
        "_Z1f" + "P" * 1_000_000 + "i",
    ],
    ids=range(8),
)
def test_symbol_that_cannot_be_demangled_stays_as_it_is(symbol: str) -> None:
    assert demangle(symbol) == symbol


def test_deeply_nested_symbol_is_demangled_or_left_alone() -> None:
    symbol = "_Z1f" + "P" * 16_000 + "i"  # runtimes differ in where they give up
    assert demangle(symbol) in (symbol, "f(int" + "*" * 16_000 + ")")


@given(st.text(max_size=60).map("_Z".__add__))
def test_demangle_never_raises(symbol: str) -> None:
    assert demangle(symbol)


@pytest.fixture
def without_cxxfilt(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    real_import = builtins.__import__

    def broken_import(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> object:
        if name == "cxxfilt":
            raise OSError("libstdc++.so.6: cannot open shared object file")
        return real_import(name, globals, locals, fromlist or (), level)

    kernel_names._cxxfilt.cache_clear()
    monkeypatch.setattr(builtins, "__import__", broken_import)
    yield
    kernel_names._cxxfilt.cache_clear()


@pytest.mark.usefixtures("without_cxxfilt")
def test_without_a_cxx_runtime_symbols_stay_mangled() -> None:
    assert demangle("_Z7add_onePKfPfi") == "_Z7add_onePKfPfi"
