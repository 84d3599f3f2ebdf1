"""Triton Proton's trees: which value is whose, and what kind of frame each node is."""

from __future__ import annotations

import gzip
import io
import json
import sys
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flame
from flame.core.errors import CancelledError, InputError
from flame.core.loading.many import load
from flame.core.model.frames import Frame, Kind
from flame.core.model.metrics import ALL_METRICS
from flame.core.model.raw import RawStacks
from flame.core.options import LoadOptions, silent
from flame.core.projection.project import project
from flame.core.projection.selection import Selection
from flame.core.readers.signs import stacks as signs
from flame.core.readers.stacks import folded, proton
from flame.exporters import folded as writer
from tests.conftest import TRACES
from tests.support.counted_calls import count_calls
from tests.support.profiles.project_tree import project_tree

REAL = TRACES / "proton" / "tritonbench.hatchet"
needs_real = pytest.mark.skipif(not REAL.exists(), reason=f"no real trace {REAL}")

Node = dict[str, Any]
Values = dict[tuple[str, ...], int]


def node(name: str, *children: Node, **metrics: object) -> Node:
    return {
        "children": [*children],
        "frame": {"name": name, "type": "function"},
        "metrics": metrics,
    }


def kernel(name: str, time: float, device: object = "0", **metrics: object) -> Node:
    return node(
        name,
        **{"count": 1, "device_id": device, "device_type": "CUDA", "time (ns)": time, **metrics},
    )


def read(tmp_path: Path, document: object) -> RawStacks:
    path = tmp_path / "p.hatchet"
    path.write_bytes(document if isinstance(document, bytes) else json.dumps(document).encode())
    return proton.read_proton(path, LoadOptions(), silent)


def frames(raw: RawStacks, row: int = 0) -> list[Frame]:
    return [raw.frames[frame] for frame in raw.stacks.build().path(int(raw.stack[row]))]


def said(raw: RawStacks, key: str) -> Values:
    """The values of a measure that are not 0, by the names on each stack."""
    stacks = raw.stacks.build()
    chosen = next(one for one in raw.measures if one.key == key)
    found: Values = {}
    for stack, value in zip(raw.stack.tolist(), chosen.values.tolist(), strict=True):
        names = tuple(raw.frames[frame].name for frame in stacks.path(stack))
        found[names] = found.get(names, 0) + value
    return {names: value for names, value in found.items() if value}


def total(tree: Node, metric: str) -> int:
    """A metric over the whole tree, as Proton's own viewer adds it up."""
    return int(tree["metrics"].get(metric, 0)) + sum(total(c, metric) for c in tree["children"])


@needs_real
def test_the_real_file() -> None:
    assert signs.is_proton(REAL.read_bytes()[: 1 << 16])
    root, devices = json.loads(REAL.read_bytes())
    raw = proton.read_proton(REAL, LoadOptions(), silent)
    assert [(one.key, one.title, one.unit) for one in raw.measures] == [
        ("time", "GPU time", "ns"),
        ("count", "count", "count"),
    ]
    assert int(raw.measures[0].values.sum()) == total(root, "time (ns)") == 91_711
    assert int(raw.measures[1].values.sum()) == total(root, "count")
    assert frames(raw)[:-1] == [
        Frame(Kind.NVTX, "tritonbench_run_op_softmax"),
        Frame(Kind.NVTX, "x_val_[4096, 256]"),
        Frame(Kind.NVTX, "naive_softmax"),
    ]
    assert frames(raw)[-1].kind == Kind.KERNEL
    assert frames(raw)[-1].name == "reduce_kernel"
    assert frames(raw)[-1].get("mangled").startswith("_ZN2at6native13reduce_kernel")
    assert raw.meta.format == "proton"
    assert raw.meta.options["CUDA 0"].startswith("arch 90, ")
    assert list(devices) == ["CUDA"]


def test_a_node_has_its_own_values_beside_its_childrens(tmp_path: Path) -> None:
    inner = node("inner", kernel("k", 7), bytes=2000)
    raw = read(tmp_path, [node("ROOT", node("outer", inner, bytes=1000)), {}])
    assert said(raw, "bytes") == {("outer",): 1000, ("outer", "inner"): 2000}
    assert said(raw, "time") == {("outer", "inner", "k"): 7}


def test_exclusive_metrics_hold_those_of_the_scopes_inside(tmp_path: Path) -> None:
    load = node("load", node("x", cycles=30), node("y", cycles=25), cycles=70)
    raw = read(tmp_path, [node("ROOT", node("k", load, node("store", cycles=10)))])
    assert said(raw, "cycles") == {
        ("k", "load"): 15,
        ("k", "load", "x"): 30,
        ("k", "load", "y"): 25,
        ("k", "store"): 10,
    }


def test_a_parent_holds_at_least_what_its_children_do(tmp_path: Path) -> None:
    tree = node(
        "ROOT", node("a", node("b", node("c", **{"cpu_time (ns)": 9})), **{"cpu_time (ns)": 5})
    )
    raw = read(tmp_path, [tree])
    assert said(raw, "cpu_time") == {("a", "b", "c"): 9}
    assert (raw.measures[0].title, raw.measures[0].unit) == ("CPU time", "ns")


def test_columns_of_hatchet_with_the_childrens_in_them(tmp_path: Path) -> None:
    tree = node(
        "main",
        node("f", **{"t (inc)": 3, "t": 3, "u (inc)": 4}),
        **{"t (inc)": 5, "t": 2, "u (inc)": 9},
    )
    raw = read(tmp_path, [tree])
    assert [one.key for one in raw.measures] == ["t", "u_inc"]
    assert said(raw, "t") == {("main",): 2, ("main", "f"): 3}
    assert said(raw, "u_inc") == {("main",): 5, ("main", "f"): 4}


def test_order_units_and_decimals_of_measures(tmp_path: Path) -> None:
    more: dict[str, object] = {
        "flops8": 1e11,
        "bytes": 12.0,
        "a rate": 0.25,
        "zero": 0,
        "A Rate": 1,
    }
    raw = read(tmp_path, [node("ROOT", kernel("k", 10.6, **more))])
    assert [(one.key, one.title, one.unit, one.values.tolist()) for one in raw.measures] == [
        ("time", "GPU time", "ns", [11]),
        ("count", "count", "count", [1]),
        ("a_rate", "A Rate", "count", [1]),
        ("a_rate_2", "a rate", "1e-2", [25]),
        ("bytes", "bytes", "bytes", [12]),
        ("flops8", "flops8", "count", [100_000_000_000]),
    ]


def test_keys_of_many_names_that_are_spelled_alike_are_not_tried_again_and_again(
    tmp_path: Path,
) -> None:
    def calls(count: int) -> int:
        names = {f"a{chr(0x4E00 + number)}": 1 for number in range(count)}
        return count_calls(partial(read, tmp_path, [node("ROOT", kernel("k", 1, **names))]))

    assert calls(2_000) < 2.5 * calls(1_000)


@pytest.mark.parametrize("key", [metric.key for metric in ALL_METRICS])
def test_a_metric_may_be_called_as_one_of_flame(tmp_path: Path, key: str) -> None:
    path = tmp_path / "p.hatchet"
    path.write_text(json.dumps([node("ROOT", node("a", **{"x (ns)": 1, f"{key} (ns)": 12}))]))
    tree = project_tree(load(path), metric=key)
    assert (tree.metric.key, int(tree.total[0])) == (key, 12)


def test_a_metric_that_is_too_large_takes_no_key(tmp_path: Path) -> None:
    raw = read(tmp_path, [node("ROOT", kernel("k", 1, A=1 << 70, a=1))])
    assert [one.key for one in raw.measures] == ["time", "count", "a"]


@pytest.mark.parametrize("place", ["/a/b.py:12@f", "/a/b.py:f@12"])
def test_python_calls(tmp_path: Path, place: str) -> None:
    raw = read(tmp_path, [node("ROOT", node(place, node("scope", kernel("k", 1))))])
    assert [frame.kind for frame in frames(raw)] == [Kind.PYTHON, Kind.NVTX, Kind.KERNEL]
    assert frames(raw)[0] == Frame(Kind.PYTHON, "f", "/a/b.py", 12)


@pytest.mark.parametrize("name", ["thread (0x7f)", "GPU 0", "f (a.py)", "cudaLaunchKernel"])
def test_a_scope_is_a_scope_whatever_its_name(tmp_path: Path, name: str) -> None:
    raw = read(tmp_path, [node("ROOT", node(name, kernel("k", 1)))])
    assert frames(raw)[0] == Frame(Kind.NVTX, name)


def test_kernels_below_their_devices_where_there_are_several(tmp_path: Path) -> None:
    raw = read(tmp_path, [node("ROOT", node("s", kernel("k", 1, "0"), kernel("l", 2, "1")))])
    assert said(raw, "time") == {("s", "GPU 0", "k"): 1, ("s", "GPU 1", "l"): 2}
    assert frames(raw)[1].kind == Kind.DEVICE


def test_names_that_are_empty_and_roots_of_another_name(tmp_path: Path) -> None:
    raw = read(tmp_path, [node("main", node("", kernel("", 1)))])
    assert said(raw, "time") == {("main", "[empty]", "[empty]"): 1}


def test_values_of_the_root_itself(tmp_path: Path) -> None:
    assert said(read(tmp_path, [node("ROOT", bytes=5)]), "bytes") == {(): 5}


def test_what_may_be_missing(tmp_path: Path) -> None:
    tree = {
        "frame": {"name": "ROOT"},
        "children": [{"frame": {"name": "a"}, "metrics": {"count": 2}}],
    }
    assert said(read(tmp_path, [tree]), "count") == {("a",): 2}


def test_what_is_no_amount_is_said(tmp_path: Path) -> None:
    raw = read(
        tmp_path, [node("ROOT", kernel("k", 1, bytes=-5, vector=[1, 2], note="x", none=None))]
    )
    assert [one.key for one in raw.measures] == ["time", "count"]
    assert raw.warnings == [
        "metrics below 0 count as 0: 1",
        "metrics that are no numbers are left out: note, vector",
    ]


def test_one_metric_too_large_leaves_the_others(tmp_path: Path) -> None:
    raw = read(tmp_path, [node("ROOT", kernel("k", 1, flops8=1e30))])
    assert [one.key for one in raw.measures] == ["time", "count"]
    assert raw.warnings == ["flops8 adds up to more than 64 bits hold: left out"]


def test_facts_and_devices_that_are_nested_are_left_out(tmp_path: Path) -> None:
    deep = "[" * 5000 + "]" * 5000
    text = json.dumps(
        [node("ROOT", kernel("k", 3, "DEEP")), {"CUDA": {"0": {"a": 1, "b": "DEEP"}}}]
    )
    raw = read(tmp_path, text.replace('"DEEP"', deep).encode())
    assert said(raw, "time") == {("k",): 3}
    assert raw.meta.options == {"CUDA 0": "a 1"}


@pytest.mark.deep
def test_it_is_refused_where_there_is_too_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLAME_MEMORY", "200kB")
    data = b'[{"children":[' + b"{}," * 1_000 + b'{}],"frame":{"name":"x"}}]'
    with pytest.raises(InputError, match=r"needs about .* and 200 kB are free"):
        read(tmp_path, data)


def test_many_metrics_of_many_nodes_are_refused_where_there_is_too_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A metric has a number for every node, whichever nodes the file names it at."""
    monkeypatch.setenv("FLAME_MEMORY", "5MB")
    few = [node("x", m=1) for _ in range(2_000)]
    assert said(read(tmp_path, [node("ROOT", *few, kernel("k", 3))]), "time") == {("k",): 3}
    many = [node("x", **{f"m{number}": 1}) for number in range(2_000)]
    with pytest.raises(InputError, match=r"needs about 64\.0 MB of memory"):
        read(tmp_path, [node("ROOT", *many)])


EMPTY_NODES = {"objects": b"{}", "with lists": b'{"children":[]}', "with both": b'{"metrics":{}}'}


@pytest.mark.parametrize("kind", EMPTY_NODES)
def test_the_memory_that_it_takes_is_known_before(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a factor of 3: what is refused for want of memory depends on it."""
    needs: list[int] = []
    monkeypatch.setattr(proton, "within_memory", lambda path, need, progress: needs.append(need))
    nodes = (EMPTY_NODES[kind] + b",") * 30_000
    tracemalloc.start()
    read(tmp_path, b'[{"children":[' + nodes + b'{"metrics":{"count":1}}],"frame":{}}]')
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken / 3 < needs[0] < 3 * taken


def test_a_tree_deeper_than_python_recurses(tmp_path: Path) -> None:
    depth = 20 * sys.getrecursionlimit()
    head = b'{"children":[' * depth + json.dumps(kernel("k", 3)).encode()
    tail = b'],"frame":{"name":"s"},"metrics":{}}' * depth
    raw = read(tmp_path, b"[" + head + tail + b',{"CUDA":{"0":{"arch":"90"}}}]')
    assert said(raw, "time") == {("s",) * depth + ("k",): 3}
    assert raw.meta.options == {"CUDA 0": "arch 90"}


trees = st.recursive(
    st.builds(kernel, st.sampled_from("klm"), st.integers(0, 99), st.sampled_from("01")),
    lambda inner: st.lists(inner, max_size=4).map(lambda children: node("s", *children, bytes=1)),
    max_leaves=20,
)


@given(trees)
def test_totals_are_those_of_the_tree(tmp_path_factory: pytest.TempPathFactory, tree: Node) -> None:
    raw = read(tmp_path_factory.mktemp("tree"), [node("ROOT", tree, bytes=1), {}])
    totals = {one.key: int(one.values.sum()) for one in raw.measures}
    wanted = {"time": "time (ns)", "count": "count", "bytes": "bytes"}
    for key, name in wanted.items():
        assert totals.get(key, 0) == total(node("ROOT", tree, bytes=1), name)


GOOD = json.dumps([node("ROOT", kernel("k", 1)), {}]).encode()
BAD = {
    "empty": b"",
    "no JSON": b"main;f 1\n",
    "cut": GOOD[:-30],
    "deep and cut": b'[{"children":[' * 5000,
    "deep and wrong": b"[" * 5000 + b"}" + b"]" * 5000,
    "not a list": b'{"frame": {"name": "ROOT"}}',
    "list of numbers": b"[1, 2]",
    "no tree": b"[{}, {}]",
    "no metrics": json.dumps([node("ROOT", node("a"))]).encode(),
    "only zeros": json.dumps([node("ROOT", kernel("a", 0, count=0))]).encode(),
    "children no list": b'[{"frame": {"name": "ROOT"}, "children": 3}]',
    "children no objects": b'[{"frame": {"name": "ROOT"}, "children": [3]}]',
    "frame no object": b'[{"frame": 3, "metrics": {"count": 1}}]',
    "name no text": b'[{"frame": {"name": 3}, "metrics": {"count": 1}}]',
    "metrics no object": b'[{"frame": {"name": "ROOT"}, "metrics": [1]}]',
    "invalid UTF-8": GOOD.replace(b"ROOT", b"\xff\xfe"),
    "cut gzip": gzip.compress(GOOD)[:-9],
    "damaged gzip": gzip.compress(GOOD)[:15] + b"\xff" * 40,
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
def test_what_cannot_be_read_says_so_in_one_line(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(InputError) as raised:
        read(tmp_path, data)
    message = str(raised.value)
    assert message.startswith(str(tmp_path / "p.hatchet") + ": ")
    assert "\n" not in message
    assert len(message) < len(str(tmp_path)) + 200


def test_a_load_can_be_stopped(tmp_path: Path) -> None:
    def stop(stage: str, done: int, expected: int) -> None:
        raise CancelledError("stopped")

    path = tmp_path / "p.hatchet"
    path.write_bytes(GOOD)
    with pytest.raises(CancelledError):
        proton.read_proton(path, LoadOptions(), stop)


@pytest.mark.parametrize(
    ("head", "taken"),
    [
        (GOOD, True),
        (b"\xef\xbb\xbf" + GOOD, True),
        (json.dumps([node("ROOT", kernel("k", 1))], indent=4, sort_keys=True).encode(), True),
        (b'[ { "children" : [\n' + b'{ "children" : [\n' * 4000, True),
        (b'[{"name": "x", "children": []}]', False),
        (b'{"children": []}', False),
        (b'[{"ph": "X", "name": "f", "ts": 1}]', False),
        (b"main;f 1\n", False),
        (b"", False),
    ],
)
def test_what_is_taken(head: bytes, taken: bool) -> None:
    assert signs.is_proton(head) == taken
    assert not (taken and folded.is_folded(head))


def exported(profile: flame.Profile) -> bytes:
    file = io.BytesIO()
    writer.write(project(profile, Selection()), file)
    return file.getvalue()


@needs_real
def test_quartet(tmp_path: Path) -> None:
    known = load(REAL)
    unknown = tmp_path / "no name at all"
    unknown.write_bytes(gzip.compress(REAL.read_bytes()))
    once = exported(load(unknown))
    assert once == exported(known)
    again = tmp_path / "again.folded"
    again.write_bytes(once)
    loaded = load(again)
    assert exported(loaded) == once
    assert int(project_tree(loaded).own.sum()) == 91_711
