"""Which kernel the view of instructions is of, what it weighs, and where it begins."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from flame.core.loading.many import load, load_all
from flame.core.model.frames import Kind
from flame.core.model.pc_samples import Code
from flame.core.model.profile import Profile
from flame.core.names.rename import Rename
from flame.core.projection.filters import Kernel
from flame.core.projection.labels import Naming
from flame.core.projection.selection import Selection
from flame.core.units import format_percent
from flame.tui.details.blocks.sample_blocks import sample_lines
from flame.tui.details.sample_facts import sampled_of
from flame.tui.sampling.subject import NONE_BELOW, ON_HOST, Spot, Subject, spot_of, subject_of
from flame.tui.sampling.version import merge_codes
from flame.tui.sass.head import head_lines
from flame.tui.sass.sides import ListedSide
from flame.tui.session.session import Projection
from flame.tui.session.tree_view import TreeView
from flame.tui.session.wording import NO_SAMPLES
from flame.tui.toolkit.palette import Palette
from flame.tui.views.sandwich_halves import SandwichHalves
from samples.make_six_levels import FOLDER as SIX_LEVELS
from tests.tui.sampled import code, sampled, shown
from tests.tui.sass.test_listing import version
from tests.tui.traces import decode

PALETTE = Palette((18, 18, 18), (224, 224, 224))
GEMM_TOTAL = 104
FLASH_TOTAL = 58


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    return sampled(tmp_path_factory.mktemp("sampled") / "decode.sqlite")


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    return sampled(tmp_path_factory.mktemp("exact") / "decode.sqlite", exact=True)


def find(projection: Projection, name: str, kind: Kind | None = None) -> int:
    """The first node called ``name``."""
    tree = projection.view.tree
    return next(
        node
        for node in range(len(tree))
        if tree.name(node) == name and (kind is None or tree.kind(node) == kind)
    )


def subject(projection: Projection, node: int) -> Subject:
    found = subject_of(projection, projection.view.tree, node)
    assert isinstance(found, Subject), found
    return found


def test_a_kernel_has_its_own_time_and_the_samples_of_all_its_launches(profile: Profile) -> None:
    projection = shown(profile)
    layer = find(projection, "model.layers.0.mlp")
    found = subject(projection, layer)
    assert (found.name, found.samples, found.exact) == ("gemm", GEMM_TOTAL, False)
    assert found.value == int(projection.view.tree.total[layer]) == 140_000
    assert (found.unsampled, found.others, found.sites) == (0, 0, 1)
    assert sum(version.value_before[-1] for version in found.versions) == found.value


def test_above_kernels_the_heaviest_sampled_one_is_shown(profile: Profile) -> None:
    projection = shown(profile)
    found = subject(projection, 0)
    assert (found.name, found.value, found.others) == ("gemm", 280_000, 1)


def test_the_versions_of_a_kernel_come_by_their_samples(profile: Profile) -> None:
    projection = shown(profile)
    found = subject(projection, find(projection, "flash_fwd_kernel"))
    assert [version.total for version in found.versions] == [48, 10]
    assert [any(version.code.text) for version in found.versions] == [True, False]
    assert found.samples == FLASH_TOTAL


def test_samples_by_launch_site_are_those_of_the_sites_below(exact: Profile) -> None:
    projection = shown(exact)
    one = subject(projection, find(projection, "model.layers.0.mlp"))
    assert (one.exact, one.sites, one.samples) == (True, 1, GEMM_TOTAL)
    both = subject(projection, find(projection, "generate"))
    assert (both.sites, both.samples, both.value) == (2, 2 * GEMM_TOTAL, 280_000)


def test_a_filter_leaves_the_samples_and_changes_the_time(profile: Profile) -> None:
    projection = shown(profile, Selection(where=(Kernel("gemm"),)))
    found = subject(projection, 0)
    assert (found.name, found.value, found.others) == ("gemm", 280_000, 0)


def test_why_there_is_none(profile: Profile, tmp_path: Path) -> None:
    bare = shown(load(decode(tmp_path / "bare.sqlite")))
    assert subject_of(bare, bare.view.tree, 0) == NO_SAMPLES
    projection = shown(profile)
    assert subject_of(projection, projection.view.tree, find(projection, "argmax")) == NONE_BELOW
    host = shown(profile, Selection(metric="host"))
    assert subject_of(host, host.view.tree, 0) == ON_HOST


def test_a_frame_in_a_sandwich_counts_at_all_places(profile: Profile) -> None:
    projection = shown(profile)
    tree = projection.view.tree
    callees = SandwichHalves.of(TreeView(tree), int(tree.frame[find(projection, "gemm")])).callees
    found = subject_of(projection, callees.tree, 0)
    assert isinstance(found, Subject)
    assert (found.name, found.value) == ("gemm", 280_000)


def test_the_selected_instruction_is_where_the_view_begins(profile: Profile) -> None:
    projection = shown(profile)
    tree = projection.view.tree
    node = find(projection, "+0x0080 @!P0 STG.E.128 [R4.64], R8")
    found = subject(projection, node)
    assert spot_of(projection, found, tree, node) == (0, 8)
    assert spot_of(projection, found, tree, node + 1) == (0, 8), "a reason below it"


def test_a_reason_begins_where_it_is_hottest(profile: Profile) -> None:
    projection = shown(profile, Selection(levels=("stall", "kernel")))
    tree = projection.view.tree
    node = find(projection, "LG Throttle")
    found = subject(projection, node)
    assert spot_of(projection, found, tree, node) == (0, 8)
    assert found.value == 280_000, "all of the kernel's time, not the part of the reason"


def test_an_instruction_of_another_version_is_found(profile: Profile) -> None:
    projection = shown(profile)
    node = find(projection, "flash_fwd_kernel+0x90")
    found = subject(projection, node)
    assert spot_of(projection, found, projection.view.tree, node) == (1, 1)


# Two kernels of one name: gemm<32> and gemm<16> of the sample


@pytest.fixture(scope="module")
def two() -> Projection:
    return shown(load(SIX_LEVELS), Selection(levels=("kernel", "sass", "stall")))


def gemm_of_both(projection: Projection) -> int:
    """A kernel below which instructions of both are."""
    tree = projection.view.tree
    nodes = (node for node in range(len(tree)) if tree.name(node) == "gemm")
    return next(node for node in nodes if len(subject(projection, node).versions) == 2)


def test_time_is_split_exactly_over_the_instructions_of_all_codes(two: Projection) -> None:
    tree = two.view.tree
    for node in range(len(tree)):
        if tree.kind(node) == Kind.KERNEL:
            found = subject(two, node)
            assert found.value == int(tree.total[node])
            whole = sum(int(one.value_before[-1]) for one in found.versions)
            assert whole == found.value - found.unsampled


def test_an_instruction_has_one_share_in_details_and_listing(two: Projection) -> None:
    tree, kernel = two.view.tree, gemm_of_both(two)
    whole = subject(two, kernel)
    for node in range(kernel + 1, int(tree.end[kernel])):
        found, facts = subject(two, node), sampled_of(two, tree, node)
        assert facts is not None
        assert (found.value, found.samples, facts.whole) == (
            whole.value,
            whole.samples,
            whole.samples,
        )
        if tree.kind(node) == Kind.SASS:
            spot = spot_of(two, found, tree, node)
            assert facts.samples == int(found.versions[spot.version].at[spot.place])


def test_codes_of_two_kernels_are_called_by_their_names(two: Projection) -> None:
    found = subject(two, gemm_of_both(two))
    text = "".join(
        piece.text for piece in head_lines(ListedSide(found, Spot(0, 0)), 1, None, PALETTE, 120)[1]
    )
    share = format_percent(found.versions[1].total, found.samples)
    assert text.startswith(f" code 2 of 2: llm::gemm<16>, {share} of the samples · all call sites")


def test_processes_with_the_same_code_have_it_listed_once(two: Projection, tmp_path: Path) -> None:
    copied = shutil.copytree(SIX_LEVELS, tmp_path / "copy")
    several = shown(load_all([SIX_LEVELS, copied]), two.selection)
    tree, node = several.view.tree, gemm_of_both(several)
    found, one = subject(several, node), subject(two, gemm_of_both(two))
    assert (found.value, len(found.versions)) == (2 * one.value, 2)
    for both, single in zip(found.versions, one.versions, strict=True):
        assert both.at.tolist() == (2 * single.at).tolist()
        assert both.value.sum() == 2 * single.value.sum()
    for place in range(node + 1, int(tree.end[node])):
        if tree.kind(place) == Kind.SASS:
            spot = spot_of(several, found, tree, place)
            code = found.versions[spot.version].code
            assert tree.name(place) == code.instruction(spot.place)


def test_codes_without_text_have_all_instructions_that_any_of_them_knows() -> None:
    none, text = Code.unknown("gemm", np.array([0, 32])), code([("EXIT", 0)])
    some = Code.unknown("gemm", np.array([16, 32])), Code.unknown("copy", np.array([16]))
    codes = dict(enumerate([none, text, *some, replace(text)]))
    found = merge_codes(codes)
    assert [numbers for _, numbers in found] == [(0, 2), (1, 4), (3,)]
    assert [one.offset.tolist() for one, _ in found] == [[0, 16, 32], [0], [16]]


def test_the_hottest_of_all_codes_is_where_the_view_begins(two: Projection) -> None:
    large = version([("a", 0), ("b", 0)], [3, 4])
    small = version([("c", 0), ("d", 0)], [0, 6])
    node = gemm_of_both(two)
    found = replace(subject(two, node), versions=(large, small))
    assert spot_of(two, found, two.view.tree, node) == (1, 1)


# Facts for the details


def test_facts_of_a_kernel(profile: Profile) -> None:
    projection = shown(profile)
    facts = sampled_of(projection, projection.view.tree, find(projection, "gemm"))
    assert facts is not None
    assert (facts.samples, facts.whole, facts.exact) == (GEMM_TOTAL, GEMM_TOTAL, False)
    assert facts.reasons[0] == ("long_scoreboard", 62)
    assert facts.hottest == ("+0x0060 FMUL R8, R8, R9", 69, 8)


def test_facts_of_an_instruction_and_of_a_reason(profile: Profile) -> None:
    projection = shown(profile)
    tree = projection.view.tree
    instruction = find(projection, "+0x0060 FMUL R8, R8, R9")
    facts = sampled_of(projection, tree, instruction)
    assert facts is not None
    assert (facts.samples, facts.whole) == (69, GEMM_TOTAL)
    assert dict(facts.reasons) == {"long_scoreboard": 60, "barrier": 6, "wait": 2, "selected": 1}
    reason = sampled_of(projection, tree, find(projection, "Barrier"))
    assert reason is not None
    assert (reason.samples, reason.whole) == (6, GEMM_TOTAL)


def test_facts_of_instructions_that_are_renamed_alike(profile: Profile) -> None:
    naming = Naming(rename=(Rename(re.compile(r"^\+0x.*"), "line"),))
    projection = shown(profile, Selection(naming=naming))
    tree = projection.view.tree
    lines = [node for node in range(len(tree)) if tree.name(node) == "line"]
    load_of_a = next(node for node in lines if tree.frames[int(tree.frame[node])].line == 4)
    facts = sampled_of(projection, tree, load_of_a)
    assert facts is not None
    assert dict(facts.reasons) == {"wait": 4, "selected": 2, "long_scoreboard": 2}


def test_facts_of_a_reason_over_all_kernels(profile: Profile) -> None:
    projection = shown(profile, Selection(levels=("stall", "nvtx", "kernel")))
    tree = projection.view.tree
    everywhere = sampled_of(projection, tree, find(projection, "Wait"))
    assert everywhere is not None
    assert (everywhere.samples, everywhere.whole) == (28, GEMM_TOTAL + FLASH_TOTAL)
    told = sample_lines(
        everywhere, tree.frames[int(tree.frame[find(projection, "Wait")])], PALETTE, 60
    )
    assert "17.3 % of 2 kernels" in "".join(piece.text for piece in told[0])
    nodes = [n for n in range(len(tree)) if tree.name(n) == "gemm"]
    below = sampled_of(projection, tree, next(n for n in nodes if "Wait" in tree.names(n)))
    assert below is not None
    assert (below.samples, below.whole) == (18, GEMM_TOTAL)


def test_what_has_no_samples_has_no_facts(profile: Profile) -> None:
    projection = shown(profile)
    tree = projection.view.tree
    assert sampled_of(projection, tree, find(projection, "argmax")) is None
    assert sampled_of(projection, tree, find(projection, "generate")) is None
