"""Every committed input, the seeds, and some mutations of them show no fault; so do new ones."""

from __future__ import annotations

import importlib.util
import random
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from tests.fuzz.checks import run
from tests.fuzz.target import CORPUS, NAMES, find_target
from tests.support.paths import ROOT
from tests.support.tiers import deep_except

MUTATIONS = 5
MOST_BYTES = 500_000
MINUTES = "0.3"


@pytest.mark.parametrize("name", NAMES)
def test_seeds_and_committed_inputs_show_no_fault(name: str) -> None:
    target = find_target(name)
    inputs = [*target.seeds(), *(path.read_bytes() for path in target.committed())]
    assert inputs
    for data in inputs:
        run(target, data)


@pytest.mark.parametrize("seed", deep_except([0], range(8)))
@pytest.mark.parametrize("name", NAMES)
def test_mutations_show_no_fault(name: str, seed: int) -> None:
    target = find_target(name)
    draw = random.Random(zlib.crc32(name.encode()) + seed)
    assert target.mutate is not None
    for data in target.seeds():
        for _ in range(MUTATIONS):
            data = target.mutate(data, draw)[: target.longest]
            run(target, data)


def test_the_corpus_is_small_and_of_every_target() -> None:
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
    native = (ROOT / "tests" / "fuzz" / "native").exists()
    assert {path.parent.name for path in files} >= {*NAMES}
    assert native or {path.parent.name for path in files} <= {*NAMES}


@pytest.mark.deep
def test_new_inputs_show_no_fault() -> None:
    if importlib.util.find_spec("atheris") is None:
        pytest.skip("atheris is not installed: make fuzz installs it where it has a wheel")
    command = [sys.executable, "tests/fuzz/run.py", "--minutes", MINUTES]
    targets = [word for name in NAMES for word in ("--target", name)]
    ended = subprocess.run([*command, *targets], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    tried = dict(re.findall(r"^(\w+) +([0-9,]+) inputs", ended.stdout, re.M))
    assert set(NAMES) <= set(tried)
    assert all(int(number.replace(",", "")) > 0 for number in tried.values()), ended.stdout


def test_a_file_is_replayed_without_a_fuzzer(tmp_path: Path) -> None:
    path = tmp_path / "input"
    path.write_bytes(b"main;work 3\n")
    command = [sys.executable, "tests/fuzz/run.py", "--target", "folded", "--replay", str(path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "no fault" in ended.stdout
