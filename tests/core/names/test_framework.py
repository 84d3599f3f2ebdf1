"""Hiding the frames of frameworks: by file and name, with all time and all that is below kept."""

from __future__ import annotations

import numpy as np
import pytest

import flame
from flame.core.model.frames import Frame, FrameTable, Kind
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.names.framework import FRAMEWORK
from flame.core.projection.filter_options import parse_filters
from flame.core.projection.filters import HideFrames, HideFramework
from tests.support.paths import SAMPLES
from tests.support.profiles.project_tree import project_tree

LEVELS = "python,launch,nvtx,kernel"
USERS = (
    "train.py:main",
    "src/modules/module.py:forward",
    "site-packages/torch/nn/modules/linear.py:Linear.forward",
    "my_threading.py:run",
    "asyncio_server.py:serve",
    ":_call_impl",
)
FRAMEWORKS = (
    "torch/nn/modules/module.py:_call_impl",
    "/usr/lib/python3/site-packages/torch/nn/modules/module.py:Module._wrapped_call_impl",
    "torch/_dynamo/eval_frame.py:_fn",
    "torch/utils/_contextlib.py:decorate_context",
    "<frozen runpy>:_run_module_as_main",
    "<frozen importlib._bootstrap>:_find_and_load",
    "/usr/lib/python3.12/threading.py:Thread.run",
    "threading.py:_bootstrap",
    "asyncio/base_events.py:run_forever",
    "contextlib.py:inner",
    "multiprocessing/spawn.py:spawn_main",
)


@pytest.fixture(scope="module")
def torch() -> Profile:
    return flame.load(SAMPLES / "torch_small.pt.trace.json.gz").profile


def names(tree: StackTree) -> set[str]:
    return {tree.name(node) for node in range(len(tree))}


@pytest.mark.parametrize("place", [*USERS, *FRAMEWORKS])
def test_the_usual_list_knows_frameworks_and_nothing_of_the_user(place: str) -> None:
    assert bool(HideFramework().compile().search(place)) == (place in FRAMEWORKS)


def test_every_expression_of_the_list_stands_alone() -> None:
    for pattern in FRAMEWORK:
        assert HideFramework(pattern).compile()


def test_what_is_below_stays_and_so_does_all_time(torch: Profile) -> None:
    whole = project_tree(torch, levels=LEVELS)
    hidden = project_tree(torch, levels=LEVELS, where=(HideFramework(),))
    lost = names(whole) - names(hidden)
    assert lost == {"_call_impl", "_wrapped_call_impl"} & names(whole) != set()
    assert hidden.total[0] == whole.total[0] and hidden.own.sum() == whole.own.sum()
    by_name = project_tree(torch, levels=LEVELS, where=(HideFrames("^_(wrapped_)?call_impl$"),))
    for column in ("parent", "frame", "own", "own_count"):
        assert getattr(hidden, column).tolist() == getattr(by_name, column).tolist()


def test_ranges_and_kernels_are_no_code(torch: Profile) -> None:
    tree = project_tree(torch, levels="nvtx,kernel")
    all_hidden = project_tree(torch, levels="nvtx,kernel", where=(HideFramework(""),))
    assert names(all_hidden) == names(tree)
    assert len(names(project_tree(torch, levels="python", where=(HideFramework(""),)))) == 1


def test_folders_of_windows_are_folders() -> None:
    file = "C:\\Lib\\site-packages\\torch\\nn\\modules\\module.py"
    table = FrameTable((Frame(Kind.ROOT, "all"), Frame(Kind.PYTHON, "_call_impl", file)), {})
    assert HideFramework().fits(table, np.arange(2)) == [1]


def test_options_make_it() -> None:
    assert parse_filters(hide_framework=True) == (HideFramework(),)
    assert parse_filters(hide_framework="x:") == (HideFramework("x:"),)
    assert parse_filters(hide_framework=False) == ()
