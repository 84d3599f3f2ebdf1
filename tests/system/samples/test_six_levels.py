"""The sample that goes down to the instruction: whole, of no machine, and what its script says."""

from __future__ import annotations

import re
import shutil
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from flame.core.loading.many import load
from flame.core.model.frames import Kind
from flame.core.model.pc_samples import Sampling
from flame.core.model.profile import Profile
from flame.core.options import LoadOptions
from samples import make_six_levels, tiny_llm, tiny_llm_samples
from tests.support.generated.sampled import per_instruction
from tests.support.profiles.project_tree import project_tree
from tests.support.writers.fdumprecords import meta

FOLDER = make_six_levels.FOLDER
FILES = sorted(one for one in FOLDER.rglob("*") if one.is_file())
STEPS, LAYERS = make_six_levels.STEPS, tiny_llm.LAYERS
RUNS = {
    tiny_llm.GEMM: STEPS * LAYERS * 6,
    tiny_llm.SMALL_GEMM: STEPS * LAYERS * 2,
    tiny_llm.SOFTMAX: STEPS * (LAYERS + 1),
    tiny_llm.NORM: STEPS * LAYERS * 2,
}
"""How often the program launches each kernel."""
SIX = (Kind.PYTHON, Kind.LAUNCH, Kind.NVTX, Kind.KERNEL, Kind.SASS, Kind.STALL)
ABSOLUTE = re.compile(rb"(?<![\w./])(?:/[A-Za-z][\w.-]*){2,}")
LEVELS = "python,launch,nvtx,kernel,sass,stall"


@pytest.fixture(scope="module")
def profile() -> Profile:
    return load(FOLDER, LoadOptions(nvtx_names="raw"))


@pytest.fixture(scope="module")
def sampling(profile: Profile) -> Sampling:
    assert profile.sampling is not None
    return profile.sampling


def scripted() -> dict[str, Counter[str]]:
    """Samples of one run by kernel and reason, and its ns as ``""``; from the script's text."""
    found: dict[str, Counter[str]] = {}
    for words in map(str.split, tiny_llm_samples.script().splitlines()):
        if words[0] == "kernel":
            found[words[1]] = Counter({"": int(words[2])})
        elif not words[3].endswith("_not_issued"):
            found[words[1]][words[3]] += int(words[4])
    return found


def test_it_is_small() -> None:
    data = [one.read_bytes() for one in FILES]
    assert sum(map(len, data)) < 1_500_000
    assert sum(len(zlib.compress(one)) for one in data) < 150_000


def test_it_says_nothing_of_the_machine_that_made_it() -> None:
    paths = {path for file in FILES for path in ABSOLUTE.findall(file.read_bytes())}
    assert paths == {b"/usr/bin/python3"}
    said = meta(FOLDER / make_six_levels.NAME)
    assert {key: said[key] for key in make_six_levels.FACTS} == {
        key: [value] for key, value in make_six_levels.FACTS.items()
    }


def test_it_says_that_no_gpu_made_it(profile: Profile) -> None:
    assert profile.meta.synthetic
    assert not profile.warnings


def test_all_levels_add_up(profile: Profile) -> None:
    tree = project_tree(profile, levels=LEVELS)
    kinds = [tree.kind(node) for node in range(len(tree))]
    assert {*SIX} <= set(kinds)
    # What runs on the GPU ends in a stall reason; only copies have no instructions.
    own = Counter[Kind]()
    for kind, value in zip(kinds, tree.own.tolist(), strict=True):
        own[kind] += value
    assert {kind for kind, value in own.items() if value} == {Kind.STALL, Kind.MEMCPY}
    assert own.total() == tree.root.total == profile.gpu_time


def test_kernels_run_as_often_and_as_long_as_the_program_says(profile: Profile) -> None:
    script = scripted()
    assert profile.counts["kernel"] == sum(RUNS.values())
    kernels = [
        one for one in project_tree(profile, levels="kernel").root.children if one.kind == "kernel"
    ]
    expected = sum(script[name][""] * runs for name, runs in RUNS.items())
    assert sum(one.total for one in kernels) == expected


def test_samples_are_those_of_the_script(sampling: Sampling) -> None:
    found = Counter[str]()
    for code, samples in zip(sampling.code.tolist(), sampling.samples.tolist(), strict=True):
        found[sampling.codes[code].name] += samples
    expected = {
        name: sum(c for reason, c in of.items() if reason) for name, of in scripted().items()
    }
    assert found == {name: RUNS[name] * samples for name, samples in expected.items()}
    assert int(sampling.totals.sum()) == sum(found.values())


def test_every_instruction_has_text_and_a_source_line(sampling: Sampling) -> None:
    source = Path(tiny_llm.__file__).with_name("llm_kernels.cu").read_text().splitlines()
    for code in sampling.codes:
        assert all(code.text)
        places = np.unique(sampling.place[sampling.code == sampling.codes.index(code)])
        for place in places.tolist():
            file = code.files[code.file[place]]
            assert not file.startswith("/")
            if file == "samples/llm_kernels.cu":
                assert source[code.line[place] - 1].strip()


def test_softmax_waits_most_where_it_divides(sampling: Sampling) -> None:
    (number,) = (i for i, one in enumerate(sampling.codes) if one.name == tiny_llm.SOFTMAX)
    (distribution,) = np.unique(
        np.searchsorted(sampling.bounds, np.flatnonzero(sampling.code == number), "right") - 1
    )
    samples = per_instruction(sampling, int(distribution), number)
    code = sampling.codes[number]
    lines = Counter[int]()
    for line, count in zip(code.line.tolist(), samples.tolist(), strict=True):
        lines[line] += count
    source = Path(tiny_llm.__file__).with_name("llm_kernels.cu").read_text().splitlines()
    (hottest, _), *_ = lines.most_common(1)
    assert "/= total" in source[hottest - 1]


def test_it_needs_neither_the_cubin_nor_a_disassembler(tmp_path: Path, sampling: Sampling) -> None:
    shutil.copytree(FOLDER, tmp_path / "copy", ignore=shutil.ignore_patterns("*.cubin"))
    copied = load(tmp_path / "copy").sampling
    assert copied is not None
    assert [one.text for one in copied.codes] == [one.text for one in sampling.codes]
