"""Work of kernels: exact sums, shares between those of parts, nothing where nothing is known."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given

from flame.core.analysis.frame_totals import frame_totals
from flame.core.efficiency.by_operator import work_by_operator
from flame.core.efficiency.sums import count_frames, count_nodes
from flame.core.efficiency.work_counts import WorkCounts
from flame.core.errors import UsageError
from flame.core.loading.many import load
from flame.core.loading.merge.profiles import merge_profiles
from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from flame.core.projection.filters import Time
from tests.support.generated.worked import H100, Call, calls, count_whole, product, write_calls
from tests.support.oracles.naive_work import naive_work
from tests.support.profiles.project_tree import project_tree
from tests.support.tiers import examples
from tests.support.writers.kinetofile import KinetoFile

random_calls = examples(0.5, [HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
SHARES = ("compute_share", "fast_compute_share", "bandwidth_share", "bound_share")


@random_calls
@given(calls)
def test_kernels_share_what_their_operator_did_as_the_definitions_say(
    trace_file: Path, made: list[Call]
) -> None:
    path = write_calls(trace_file, made)
    profile, naive = load(path), naive_work(path)
    work, table = profile.work, profile.activities
    if work is None:
        assert not any(kernel.operator for kernel in naive.kernels)
        return
    names = [
        profile.frames[operator].name if operator >= 0 else None
        for operator in work.operator.tolist()
    ]
    columns = (table.duration, work.flops, work.bytes)
    found = zip(*(column.tolist() for column in columns), names, strict=True)
    # The naive one numbers kernels in the order of the file: of equal remainders the first has it.
    assert Counter(found) == Counter(map(tuple, naive.kernels))
    assert (work.bare, work.bare_flops) == (naive.bare, naive.bare_flops)


@random_calls
@given(calls)
def test_a_node_has_what_is_below_it_and_a_share_between_those_of_its_parts(
    trace_file: Path, made: list[Call]
) -> None:
    profile = load(write_calls(trace_file, made))
    tree = project_tree(profile, levels="nvtx,kernel", metric="gpu")
    counts = count_nodes(profile, tree)
    if profile.work is None or counts is None:
        assert profile.work is None and counts is None
        return
    whole = count_whole(profile)
    assert whole is not None
    for name in ("flops", "bytes", "covered_ns", "compute_ps", "bound_ps", "waste"):
        column = getattr(counts, name)
        assert column[0] == getattr(whole, name)[0] == getattr(profile_rows(profile), name).sum()
    for node in range(len(tree)):
        below = np.flatnonzero(tree.parent == node)
        own = counts.rated_ns[node] - counts.rated_ns[below].sum()
        shares = counts.compute_share[below[counts.rated_ns[below] > 0]]
        if own == 0 and len(shares):
            assert shares.min() - 1e-9 <= counts.compute_share[node] <= shares.max() + 1e-9


def profile_rows(profile: Profile) -> WorkCounts:
    from flame.core.efficiency.sums import of_covered

    assert profile.work is not None
    return of_covered(profile, profile.work, profile.work.shared)


@random_calls
@given(calls)
def test_two_windows_add_up(trace_file: Path, made: list[Call]) -> None:
    profile = load(write_calls(trace_file, made))
    middle = (profile.begin + profile.end) // 2
    parts = [count_whole(profile, (one,)) for one in (Time(None, middle), Time(middle, None))]
    whole = count_whole(profile)
    if whole is None:
        assert parts == [None, None]
        return
    first, second = parts
    assert first is not None and second is not None
    for name in ("flops", "bytes", "covered_ns", "rated_ns", "memory_ps", "waste", "overlapped_ns"):
        assert getattr(first, name)[0] + getattr(second, name)[0] == getattr(whole, name)[0]


@random_calls
@given(calls)
def test_without_a_peak_there_is_no_share_of_one_anywhere(
    trace_file: Path, made: list[Call]
) -> None:
    profile = load(write_calls(trace_file, made, device="Some GPU"))
    tree = project_tree(profile, metric="gpu")
    for counts in (count_nodes(profile, tree), count_frames(profile, tree), count_whole(profile)):
        for share in SHARES if counts is not None else ():
            assert np.isnan(getattr(counts, share)).all()
    assert "waste" not in [metric.key for metric in profile.metrics]


def one_product(file: KinetoFile, at: int, kernels: tuple[int, ...], tid: int = 1) -> None:
    """A product of 2 * 64 * 32 * 16 FLOPs, and its kernels on stream 7."""
    file.op("aten::mm", at, at + 100, tid=tid, **product(64, 32, 16))
    for number, length in enumerate(kernels):
        file.runtime(at + number, at + 10 + number, at + 11 + number, tid=tid)
        file.kernel(
            f"k{number}", at + 1000 + 100 * number, at + 1000 + 100 * number + length, at + number
        )


FLOPS, BYTES = 2 * 64 * 32 * 16, 2 * (64 * 32 + 32 * 16 + 64 * 16)


def test_split_kernels_have_their_part_by_time_and_the_first_has_all_of_no_time(
    tmp_path: Path,
) -> None:
    file = KinetoFile()
    one_product(file, 1000, (60, 30))
    one_product(file, 5000, (0, 0))
    work = load(file.write(tmp_path / "a.json")).work
    assert work is not None
    assert work.flops.tolist() == [43691, 21845, FLOPS, 0]
    assert work.bytes.tolist() == [4779, 2389, BYTES, 0]
    assert (work.calls, work.bare) == (2, 0)


def test_an_expanded_bias_is_read_once_and_a_convolution_needs_its_values(
    tmp_path: Path,
) -> None:
    file = KinetoFile()
    products = {
        "Input_Dims": [[64, 16], [64, 32], [32, 16], [], []],
        "Input_type": ["c10::Half"] * 3 + ["Scalar"] * 2,
        "Concrete_Inputs": ["", "", "", "1", "1"],
    }
    image = {"Input_Dims": [[2, 4, 9], [6, 4, 3], [6]], "Input_type": ["float"] * 3}
    values = ["", "", "", "[2]", "[1]", "[1]", "False", "[0]", "1"]
    made: list[tuple[str, dict[str, object]]] = [
        ("aten::addmm", {**products, "Input_Strides": [[16, 1], [32, 1], [16, 1], [], []]}),
        ("aten::addmm", {**products, "Input_Strides": [[0, 1], [32, 1], [16, 1], [], []]}),
        ("aten::addmm", products),
        ("aten::convolution", image),
        ("aten::convolution", {**image, "Concrete_Inputs": values}),
    ]
    for number, (name, args) in enumerate(made, 1):
        file.op(name, 1000 * number, 1000 * number + 100, **args)
        file.launch(
            number, (1000 * number + 10, 1000 * number + 20), (9000 * number, 9000 * number + 5)
        )
    work = load(file.write(tmp_path / "a.json")).work
    assert work is not None
    read = 64 * 32 + 32 * 16 + 64 * 16
    dense, expanded = 2 * (read + 64 * 16), 2 * (read + 16)
    assert work.bytes.tolist() == [dense, expanded, dense, 0, 4 * (72 + 72 + 60)]
    assert work.flops.tolist() == [FLOPS, FLOPS, FLOPS, 0, 2 * 2 * 5 * 3 * 6 * 4]


def test_a_step_of_decode_reads_every_weight_once_and_little_else(tmp_path: Path) -> None:
    """Two steps of a small transformer for a batch of two: weights, transposed, with biases."""
    width, layers, vocabulary, batch = 512, 3, 4000, 2
    sizes = [(width, 3 * width), (width, width), (width, 4 * width), (4 * width, width)]
    weights = layers * sum(read * made + made for read, made in sizes) + width * vocabulary
    file = KinetoFile()
    calls = [*sizes * layers, (width, vocabulary)] * 2
    for number, (read, made) in enumerate(calls):
        at, has_bias = 1000 * number, made != vocabulary
        file.op(
            "aten::addmm" if has_bias else "aten::mm",
            *(at, at + 100),
            Input_Dims=[[made]] * has_bias + [[batch, read], [read, made], [], []],
            Input_type=["c10::BFloat16"] * (2 + has_bias) + ["Scalar"] * 2,
            Input_Strides=[[1]] * has_bias + [[read, 1], [1, read], [], []],
            Concrete_Inputs=[""] * (2 + has_bias) + ["1", "1"],
        )
        file.launch(number + 1, (at + 10, at + 20), (at + 200, at + 900))
    profile = load(file.write(tmp_path / "decode.json"))
    begin, half = int(profile.activities.start[0]), len(calls) // 2 * 1000
    for step in range(2):
        window = Time(begin - 100 + step * half, begin - 100 + (step + 1) * half)
        counts = count_whole(profile, (window,))
        assert counts is not None and counts.covered[0] == len(calls) // 2
        assert 2 * weights <= counts.bytes[0] < 2.02 * weights


def test_what_is_launched_on_another_thread_is_of_no_operator(tmp_path: Path) -> None:
    file = KinetoFile()
    one_product(file, 1000, ())
    file.runtime(1, 1010, 1020, tid=2)
    file.kernel("other", 2000, 2100, 1)
    file.memcpy(3000, 3100, 1)
    work = load(file.write(tmp_path / "a.json")).work
    assert work is not None
    assert work.operator.tolist() == [-1, -1]
    assert (work.calls, work.bare, work.bare_flops) == (0, 1, FLOPS)


def test_copies_in_an_operator_are_no_kernels_of_it(tmp_path: Path) -> None:
    file = KinetoFile()
    one_product(file, 1000, (60,))
    file.memset(1500, 1600, 1000)
    counts = count_whole(load(file.write(tmp_path / "a.json")))
    assert counts is not None
    assert (counts.flops[0], counts.kernel_ns[0], counts.coverage[0]) == (FLOPS, 60, 1.0)


def test_metrics_are_there_where_shapes_are_and_say_what_lacks_else(tmp_path: Path) -> None:
    file = KinetoFile()
    one_product(file, 1000, (60,))
    profile = load(file.write(tmp_path / "a.json"))
    keys = [metric.key for metric in profile.metrics]
    assert keys[-2:] == ["flops", "bytes"]
    assert int(project_tree(profile, metric="flops").total[0]) == FLOPS
    assert int(project_tree(profile, metric="bytes", levels="kernel").total[0]) == BYTES
    with pytest.raises(UsageError, match="--metric waste: the peak of no GPU here is known"):
        project_tree(profile, metric="waste")
    given_peak = load(tmp_path / "a.json", LoadOptions(peak="bf16=1,mem=1"))
    # 65,536 FLOPs at 1 TFLOP/s are 66 ns, 7,168 bytes at 1 GB/s 7,168 ns: more than it took.
    assert int(project_tree(given_peak, metric="waste").total[0]) == 0
    fast = load(tmp_path / "a.json", LoadOptions(peak="bf16=4,mem=1000"))
    assert int(project_tree(fast, metric="waste").total[0]) == 60 - 16

    bare = KinetoFile()
    bare.op("aten::mm", 0, 100)
    bare.launch(1, (10, 20), (30, 40))
    profile = load(bare.write(tmp_path / "b.json"))
    assert profile.work is None
    with pytest.raises(UsageError, match="--metric flops: no operator here has shapes"):
        project_tree(profile, metric="flops")


def test_frames_count_recursion_once_and_stand_in_the_order_of_their_totals(
    tmp_path: Path,
) -> None:
    file = KinetoFile()
    file.annotation("layer", 900, 5000)
    file.annotation("layer", 950, 4900)
    one_product(file, 1000, (60, 30))
    profile = load(file.write(tmp_path / "a.json"))
    tree = project_tree(profile, levels="nvtx,kernel")
    counts, totals = count_frames(profile, tree), frame_totals(tree)
    assert counts is not None
    found = {
        tree.text[frame]: (flops, covered)
        for frame, flops, covered in zip(
            totals.frame.tolist(), counts.flops.tolist(), counts.covered.tolist(), strict=True
        )
    }
    assert found == {
        "layer": (FLOPS, 2),
        "aten::mm": (FLOPS, 2),
        "k0": (43691, 1),
        "k1": (21845, 1),
    }


def test_trees_of_the_host_and_of_other_tables_have_no_work(tmp_path: Path) -> None:
    file = KinetoFile()
    one_product(file, 1000, (60,))
    profile = load(file.write(tmp_path / "a.json"))
    for metric in ("host", "waiting"):
        assert count_nodes(profile, project_tree(profile, metric=metric)) is None


def test_several_files_each_have_their_own_work(tmp_path: Path) -> None:
    for number in (1, 2):
        file = KinetoFile(pid=number)
        file.device(0, H100 if number == 1 else "Some GPU")
        one_product(file, 1000, (60, 30)[:number])
        file.write(tmp_path / f"{number}.json")
    loaded = [load(tmp_path / "1.json"), load(tmp_path / "2.json")]
    profile = merge_profiles(loaded, ["1", "2"])
    counts = count_whole(profile)
    assert counts is not None
    assert (counts.flops[0], counts.covered[0], counts.rated[0]) == (2 * FLOPS, 3, 1)
    # The peak of one GPU is not known: the share is of the kernel of the other alone.
    assert counts.compute_share[0] == pytest.approx(FLOPS / 989.4 / 60_000, rel=1e-2)
    assert counts.rated_coverage[0] == 60 / 150


def test_operators_are_told_apart_by_shapes_where_that_is_asked_for(tmp_path: Path) -> None:
    file = KinetoFile()
    one_product(file, 1000, (60,))
    file.op("aten::mm", 6000, 6100, **product(2, 2, 2))
    file.runtime(7, 6010, 6020)
    file.kernel("small", 9000, 9100, 7)
    profile = load(file.write(tmp_path / "a.json"))
    merged, apart = (work_by_operator(profile, shapes=shapes) for shapes in (False, True))
    assert merged is not None and apart is not None
    assert [frame.name for frame in merged.frames] == ["aten::mm"]
    assert merged.counts.flops.tolist() == [FLOPS + 16]
    assert [frame.get("shapes") for frame in apart.frames] == [
        "[[2, 2], [2, 2]]",
        "[[64, 32], [32, 16]]",
    ]
    assert apart.counts.covered_ns.tolist() == [100, 60]


def test_damaged_sizes_whose_sums_fit_no_64_bits_count_for_nothing(tmp_path: Path) -> None:
    file = KinetoFile()
    for number in range(100):
        at = 1000 + 1000 * number
        file.op("aten::mm", at, at + 100, **product(1 << 20, 1 << 15, 1 << 20))
        file.runtime(number + 1, at + 10, at + 20)
        file.kernel("k", at + 200, at + 300, number + 1)
    profile = load(file.write(tmp_path / "a.json"))
    work = profile.work
    assert work is not None
    assert (work.flops == 0).all() and (work.operator == -1).all()
    assert (profile.activities.kind == Kind.KERNEL).all()
