"""The fuzz targets of the compiled part, without a fuzzer: what is kept of inputs, and some more.

``make fuzz`` drives the same targets by clang's libFuzzer, where that is installed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from csrc.build import BuildError
from tests.fuzz.core import targets
from tests.fuzz.core.targets import TARGETS
from tests.support.replaying import assert_no_harm
from tests.support.waiting import PATIENCE

MUTATIONS = 20_000
MOST_BYTES = 60_000


def test_every_target_has_inputs_and_they_are_small() -> None:
    files = {target.name: list(target.corpus.iterdir()) for target in TARGETS}
    assert all(files.values())
    assert sum(file.stat().st_size for each in files.values() for file in each) < MOST_BYTES
    assert {path.name for path in targets.HERE.glob("*.c")} == {one.source for one in TARGETS}


@pytest.mark.deep
def test_no_input_does_harm(tmp_path: Path) -> None:
    try:
        core = targets.replayer_core(tmp_path)
    except BuildError as error:
        if "failed" in str(error):
            raise
        pytest.skip(str(error))
    for target in TARGETS:
        replayer = target.build_replayer(tmp_path, core)
        assert_no_harm(replayer, target.corpus, MUTATIONS, tmp_path, 10 * PATIENCE)


def test_without_clang_it_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FUZZ_CXX", "no-such-clang++")
    with pytest.raises(RuntimeError, match="no no-such-clang"):
        TARGETS[0].build(tmp_path)
