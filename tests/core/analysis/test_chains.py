"""Chains of frames that hand nearly all they hold on, and how they are put into words."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given

from flame.core.analysis.chains import Chains, chain_words, find_chains, telling_place
from flame.core.model.frames import Frame, Kind
from flame.core.model.tree import StackTree
from tests.tui.trees import chained_trees, node, python, random_trees, stack_tree

JOINED = (Kind.PYTHON, Kind.NATIVE, Kind.NVTX, Kind.FRAME)


def slow_chains(tree: StackTree) -> list[list[int]]:
    """The chains, by walking down from every node that is in none yet."""
    seen: set[int] = set()
    found = []
    for first in range(len(tree)):
        if first in seen or tree.kind(first) not in JOINED or not tree.total[first]:
            continue
        chain = [first]
        while (after := slow_next(tree, chain)) is not None:
            chain.append(after)
        seen.update(chain)
        found += [chain] if len(chain) > 1 else []
    return found


def slow_next(tree: StackTree, chain: list[int]) -> int | None:
    whole = int(tree.total[chain[0]])
    for child in tree.children(chain[-1]):
        alike = tree.kind(child) == tree.kind(chain[0])
        if alike and Fraction(int(tree.total[child]), whole) >= Fraction(99, 100):
            return child
    return None


def listed(chains: Chains) -> list[list[int]]:
    return [chains.members(chain).tolist() for chain in range(len(chains))]


@given(chained_trees)
def test_chains_are_what_walking_down_finds(tree: StackTree) -> None:
    chains = find_chains(tree)
    assert sorted(listed(chains)) == slow_chains(tree)


@given(chained_trees)
def test_every_node_knows_its_chain(tree: StackTree) -> None:
    chains = find_chains(tree)
    of = {one: chain for chain, nodes in enumerate(listed(chains)) for one in nodes}
    assert chains.of.tolist() == [of.get(one, -1) for one in range(len(tree))]
    for one in range(len(tree)):
        assert one in chains.around(one) or one not in of
    assert chains.first.tolist() == [nodes[0] for nodes in listed(chains)]


@given(random_trees)
def test_kernels_are_in_no_chain(tree: StackTree) -> None:
    assert len(find_chains(tree)) == 0


def test_a_chain_is_of_one_kind_and_never_holds_launches_or_kernels() -> None:
    launch, outer, inner = Frame(Kind.LAUNCH, "l"), Frame(Kind.NVTX, "r"), Frame(Kind.NVTX, "s")
    path = (python("a"), python("b"), launch, outer, inner, "k", "k")
    tree = stack_tree({path: 7})
    assert listed(find_chains(tree)) == [[1, 2], [4, 5]]


def test_what_is_lost_on_the_way_adds_up() -> None:
    a, b, c, d = map(python, "abcd")
    tree = stack_tree({(a, b, c, d): 9_820, (a, b, c): 60, (a, b): 60, (a,): 60})
    assert [tree.names(nodes[-1])[-1] for nodes in listed(find_chains(tree))] == ["b", "d"]
    tree = stack_tree({(a, b, c, d): 9_900, (a, b): 50, (a,): 50})
    assert listed(find_chains(tree)) == [[1, 2, 3, 4]]


def test_the_largest_values_do_not_overflow() -> None:
    a, b, c = map(python, "abc")
    tree = stack_tree({(a, b): 9 * 10**18, (a, c): 1})
    assert listed(find_chains(tree)) == [[node(tree, "a"), node(tree, "a", "b")]]


def test_a_long_chain_is_found_whole() -> None:
    tree = stack_tree({tuple(python(f"f{place}") for place in range(1000)): 5})
    assert listed(find_chains(tree)) == [list(range(1, 1001))]


# Words


def words(names: str, named: int | None = None, inverted: bool = False) -> list[str]:
    spelled = chain_words(names.split(), 1000, named, inverted)
    return list(dict.fromkeys(" › ".join(one) for one in spelled))


def test_the_outermost_and_the_innermost_names_stay_longest() -> None:
    assert words("main run step layer forward") == [
        "main › run › step › layer › forward",
        "main › … › step › layer › forward",
        "main › … 2 frames › layer › forward",
        "main › … 3 frames › forward",
        "… › forward",
    ]


def test_the_innermost_module_says_most() -> None:
    names = [
        "run",
        "nn.Module: A",
        "_call_impl",
        "forward",
        "nn.Module: B",
        "_call_impl",
        "forward",
    ]
    assert names[telling_place(names)] == "nn.Module: B"
    assert telling_place(names) == 4
    assert telling_place(names[::-1], inverted=True) == 2
    assert telling_place(["main", "forward", "_call_impl"]) == 1
    assert telling_place(["main", "cudaMemcpy", "libcuda.so!0x7f", "libcupti.so!0x7e"]) == 1
    assert telling_place(["_wrapped_call_impl", "_call_impl"]) == 1
    last = [" › ".join(one) for one in chain_words(names, 1000)][-3:]
    assert last == [
        "run › … 3 frames › nn.Module: B › …",
        "… › nn.Module: B › … › forward",
        "… › nn.Module: B › …",
    ]


def test_a_name_that_has_to_be_shown_is_shown_by_all() -> None:
    spelled = words("a b c d e", named=2)
    assert spelled[-1] == "… › c › …"
    assert all("c" in one for one in spelled)


@pytest.mark.parametrize("named", [None, 0, 1, 3])
def test_an_inverted_chain_is_the_mirror_image(named: int | None) -> None:
    names = ["a", "b", "c", "d"]
    place = None if named is None else 3 - named
    mirrored = [one[::-1] for one in chain_words(names[::-1], 1000, place)]
    assert list(chain_words(names, 1000, named, inverted=True)) == mirrored


def test_of_a_long_chain_only_what_may_fit_is_spelled() -> None:
    names = [f"f{place}" for place in range(100_000)]
    choices = chain_words(names, 80)
    assert len(next(choices)) < 80
    spelled = list(choices)
    assert len(spelled) < 80
    assert spelled[-2:] == [["…", "f99999"]] * 2
    assert spelled[-3] == ["f0", "… 99,998 frames", "f99999"]
