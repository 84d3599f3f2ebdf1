"""A program watched in a real terminal while it runs: attach, zoom, pause, mark, end, save."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flame.core.loading.many import load
from tests.cli.programs import KERNELS
from tests.inject.conftest import buildable as buildable
from tests.inject.conftest import fake as fake
from tests.inject.conftest import injected_env as injected_env
from tests.inject.conftest import library as library
from tests.tui.test_first_minute import FLAME, Tmux, ended
from tests.tui.test_first_minute import pytestmark as pytestmark
from tests.tui.test_first_minute import tmux as tmux

TRAINING = (
    """
import nvtx
"""
    + KERNELS
    + """
def phase(name, *kernels):
    with nvtx.annotate(name):
        for kernel in kernels:
            launch(kernel)


try:
    phase("warmup", *300 * [gemm])
    call("cuCtxSynchronize")
    print("ready", flush=True)
    number, begin = 0, time.monotonic()
    while time.monotonic() < begin + 300:
        with nvtx.annotate("step"):
            phase("attention", gemm, softmax)
            phase("mlp", gemm)
        time.sleep(0.01)
except KeyboardInterrupt:
    pass
"""
)
OLDER = r"▏step  \d\d\.\d %"
"""What ran before the steps is shown as well."""


@pytest.fixture
def training(
    tmp_path: Path, injected_env: Callable[..., dict[str, str]]
) -> Iterator[subprocess.Popen[str]]:
    """A program that runs until it is interrupted, recorded into ``recording``."""
    folder = tmp_path / "recording"
    folder.mkdir(0o700)
    command = [sys.executable, "-c", TRAINING]
    with subprocess.Popen(
        command, env=injected_env(folder), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def activities(screen: str) -> str:
    """What the header says of how much ran."""
    found = re.search(r"· ([\d,]+) GPU activities", screen)
    assert found, screen
    return found[1]


@pytest.mark.deep
def test_a_program_is_watched_until_it_ends(
    tmux: Tmux, tmp_path: Path, training: subprocess.Popen[str]
) -> None:
    tmux.line(f"{FLAME} attach {training.pid} --levels nvtx,kernel --window all")
    tmux.until("● live  all", r"▏step  [\d.]+ %", "▏attention", "p pause")

    tmux.press("Down", "Down", "Enter")
    tmux.until_gone("▏all  100.0 %")
    tmux.press("p")
    before = tmux.until("paused · 0:0[1-9] behind")
    assert activities(tmux.until("paused · 0:0[2-9] behind")) == activities(before)
    tmux.press("p")
    tmux.until_that(lambda screen: activities(screen) != activities(before), "more")

    tmux.press("Escape")
    tmux.until("▏all  100.0 %", OLDER)
    tmux.press("M")
    tmux.until("● live  since mark", "▏step  100.0 %")
    tmux.press("W")
    tmux.until("● live  last 10 s")
    tmux.press("W", "W")
    tmux.until("● live  all", OLDER)

    training.send_signal(signal.SIGINT)
    tmux.until(r"\n ended  all", "the process ended; what is shown stays, S saves it")
    whole = activities(tmux.screen)
    tmux.press("S")
    tmux.until("Save", r"\(x\) dump")
    tmux.press("Enter")
    found = re.search(r"wrote (\S+\.flame): 1 process", tmux.until(r"wrote \S+\.flame: 1 process"))
    assert found
    tmux.press("q")
    ended(tmux)

    (dump,) = (tmp_path / "recording").glob("*.fdump")
    recorded, saved = load(dump), load(tmp_path / found[1])
    assert f"{len(recorded.activities):,}" == whole
    assert saved.gpu_time == recorded.gpu_time
    assert saved.counts == recorded.counts


def test_leaving_leaves_the_program_alone(tmux: Tmux, training: subprocess.Popen[str]) -> None:
    for _ in range(2):
        tmux.line(f"{FLAME} attach {training.pid}")
        tmux.until("● live  last 10 s", "q leave")
        tmux.press("q")
        ended(tmux)
        tmux.line("clear")
    assert training.poll() is None


@pytest.mark.deep
def test_what_was_killed_is_saved_and_looked_at_again(
    tmux: Tmux, tmp_path: Path, training: subprocess.Popen[str]
) -> None:
    tmux.line(f"{FLAME} attach {training.pid} --levels nvtx,kernel")
    tmux.until("● live  last 10 s", "▏step  ")
    training.kill()
    training.wait()
    tmux.until("^ .*\n killed  last 10 s", "the process ended without saying so; what is shown")
    tmux.press("p")
    tmux.until("the recording has ended: nothing moves any more")
    tmux.press("S")
    tmux.until("Save", r"\(x\) dump")
    tmux.press("Enter")
    tmux.until(r"wrote \S+\.flame: 1 process")
    tmux.press("q")
    ended(tmux)

    (saved,) = tmp_path.glob("*.flame")
    tmux.line(f"clear; {FLAME} attach {saved} --levels nvtx,kernel")
    tmux.until("killed  all", "▏step  ", "warmup")
    tmux.press("q")
    ended(tmux)
    assert "its recording has ended, nothing more will come" in tmux.screen
    (dump,), (copy,) = (tmp_path / "recording").glob("*.fdump"), saved.glob("*.fdump")
    assert load(copy).gpu_time == load(dump).gpu_time > 0
