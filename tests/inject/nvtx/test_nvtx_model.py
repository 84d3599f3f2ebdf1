"""Any pushes and pops of NVTX, against a model of the ranges that are open."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inject import build
from tests.inject.nvtx.nvtx_recorded import recorded
from tests.support.tiers import examples


class Model:
    """The open ranges of a thread, in the order of their pushes."""

    def __init__(self) -> None:
        self.open: list[tuple[str, str]] = []

    def do(self, what: str, domain: str = "", name: str = "") -> int:
        """What NVTX has to return."""
        depth = sum(each == domain for each, _ in self.open)
        if what == "push":
            self.open.append((domain, name))
            return depth
        if what == "pop" and depth:
            innermost = max(i for i, (each, _) in enumerate(self.open) if each == domain)
            del self.open[innermost]
        return depth - 1 if what == "pop" else 0

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(name for _, name in self.open)


DOMAINS = st.sampled_from(["0", "one", "two", "three"])
NAMES = st.sampled_from(["a", "b", "c"])
PUSHES = st.tuples(st.just("push"), DOMAINS, NAMES)
POPS = st.tuples(st.just("pop"), DOMAINS)
FORKS = st.just(("fork",))
COMMANDS = st.lists(st.one_of(PUSHES, PUSHES, PUSHES, POPS, POPS, FORKS), max_size=40)


@pytest.fixture(scope="module")
def model(buildable: None, compiled: Callable[..., Path]) -> Path:
    return compiled("nvtx_model.cpp", *build.OPTIMIZED, *map(str, build.sources()))


@examples(0.25)
@given(commands=COMMANDS)
def test_any_pushes_and_pops(
    commands: list[tuple[str, ...]],
    model: Path,
    injected_env: Callable[..., dict[str, str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("model")
    told = "".join(" ".join(command) + "\n" for command in commands)
    env = injected_env(folder, fake=False)
    del env["NVTX_INJECTION64_PATH"]  # the library is in the program
    done = subprocess.run([model], input=told, env=env, capture_output=True, text=True, check=True)
    dumps = {dump.pid: dump for dump in recorded(folder)}
    expected = Model()
    for command, line in zip(commands, done.stdout.splitlines(), strict=True):
        pid, returned, path = map(int, line.split())
        assert returned == expected.do(*command)
        assert (dumps[pid].path_of(path) if path else ()) == expected.path
    if dumps:
        last = max(dumps.values(), key=lambda dump: dump.path.name.split("-")[1])
        assert last.open == [expected.path[: i + 1] for i in range(len(expected.path))]
