"""The library records the calls of the driver that readers class, whatever CUPTI calls them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from flame.core.model.calls import CallClass, call_class
from inject import build
from tests.support.waiting import PATIENCE

OTHER, KERNEL, WORK, GRAPH_COPY, HOST, KERNELS = range(6)
"""Role in call_roles.h."""
# The pair that 64-bit programs never called, and what readers know by its name alone.
OLD = re.compile(r"cu64Mem(Alloc|Free|HostAlloc|cpy|set)")
LOADS = re.compile(r"cu(Module|Library)(Load|Unload)|cuLinkComplete")
POLLS = re.compile(r"cu(Event|Stream)Query|cuStreamWait(Event|Value)")


@pytest.fixture(scope="module")
def roles(compiled: Callable[..., Path]) -> dict[str, int]:
    """The role of every call of the driver that this CUPTI has callbacks for, by name."""
    (header,) = (
        path
        for folder in build.includes()
        if (path := Path(folder) / "cupti_driver_cbid.h").is_file()
    )
    names = re.findall(r"CUPTI_DRIVER_TRACE_CBID_(cu\w+)\s*=", header.read_text())
    assert len(names) > 500
    program = compiled("call_roles.cpp", str(build.HERE / "cupti" / "call_roles.cpp"))
    done = subprocess.run(
        [program], input="\n".join(names), capture_output=True, text=True, timeout=PATIENCE
    )
    return dict(zip(names, map(int, done.stdout.split()), strict=True))


def test_every_call_that_waits_allocates_or_frees_is_recorded(roles: dict[str, int]) -> None:
    classes = {CallClass.SYNC, CallClass.ALLOC}
    blocking = {name for name in roles if call_class(name) in classes or LOADS.match(name)}
    recorded = {name for name, role in roles.items() if role == HOST and not OLD.match(name)}
    assert blocking - {name for name in blocking if OLD.match(name)} == recorded
    assert len(recorded) > 30


def test_every_call_that_launches_or_copies_is_a_launch(roles: dict[str, int]) -> None:
    classes = {CallClass.LAUNCH, CallClass.COPY}
    for name, role in roles.items():
        if name.startswith(("cuGraphAdd", "cuGraphExec", "cuGraphKernel", "cuLaunchHostFunc")):
            assert role in (OTHER, GRAPH_COPY), name
        elif call_class(name) in classes:
            assert role in (KERNEL, WORK, KERNELS), name


def test_what_launches_kernels_is_told_from_copies_and_sets(roles: dict[str, int]) -> None:
    launching = {name for name, role in roles.items() if role in (KERNEL, KERNELS)}
    assert launching == {
        name for name, role in roles.items() if role != OTHER and re.match("cu(Graph)?Launch", name)
    }


def test_what_only_asks_is_not_recorded(roles: dict[str, int]) -> None:
    asking = {name for name in roles if POLLS.match(name)}
    assert len(asking) > 4
    assert {roles[name] for name in asking} == {OTHER}
