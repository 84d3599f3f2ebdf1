"""The fuzz targets of the library, without a fuzzer: what is kept of their inputs, and some more.

``make fuzz`` drives the same targets by clang's libFuzzer, where that is installed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from inject import build
from tests.fuzz.native import targets
from tests.fuzz.native.targets import TARGETS, Target
from tests.inject.conftest import HIDDEN, PATIENT, SANITIZERS, WATCHED, built
from tests.support.replaying import assert_no_harm
from tests.support.waiting import PATIENCE

MUTATIONS = 1000
MOST_BYTES = 100_000

EACH = pytest.mark.parametrize("target", TARGETS, ids=[target.name for target in TARGETS])


def replayer(target: Target) -> Path:
    """The target with its driver, of the objects that other tests with a sanitizer have made."""
    flags = (HIDDEN, *WATCHED, *SANITIZERS["address"], PATIENT)
    return built(target.name, [targets.HERE / targets.DRIVER, *target.sources], *flags)


def test_every_target_has_inputs_and_they_are_small() -> None:
    files = {target.name: list(target.corpus.iterdir()) for target in TARGETS}
    assert all(files.values())
    assert sum(file.stat().st_size for each in files.values() for file in each) < MOST_BYTES
    used = {name for target in TARGETS for name in (target.source, *target.beside)}
    assert {path.name for path in targets.HERE.glob("*.cpp")} == {
        targets.DRIVER,
        targets.OPTIONS,
        *used,
    }


def test_a_target_is_made_of_files_that_there_are() -> None:
    for target in TARGETS:
        assert target.aimed_at
        assert all((build.HERE / file).is_file() for file in target.included)
        assert all(file.is_file() for file in target.sources)


@pytest.mark.deep
@EACH
def test_no_input_does_harm(buildable: None, target: Target, tmp_path: Path) -> None:
    assert_no_harm(replayer(target), target.corpus, MUTATIONS, tmp_path, 5 * PATIENCE)


def test_without_clang_it_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FUZZ_CXX", "no-such-clang++")
    with pytest.raises(RuntimeError, match="no no-such-clang"):
        TARGETS[0].build(tmp_path)
