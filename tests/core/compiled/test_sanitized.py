"""No input of the differential tests makes the compiled part read or write what is not its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from csrc.build import BuildError, build, compiler
from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE

pytestmark = pytest.mark.deep

SANITIZED = ("-O1", "-g1", "-fno-omit-frame-pointer", "-shared", "-fsanitize=address,undefined")
STRICT = ("-Werror", "-fno-sanitize-recover=all")
TESTS = (
    "tests/core/compiled/test_differences.py",
    "tests/core/compiled/test_ordered_differences.py",
    "tests/core/compiled/test_share_differences.py",
    "tests/core/readers/sqlite/test_pages.py",
    "tests/core/attribution/test_nesting.py",
    "tests/core/attribution/test_thread_pieces.py",
    "tests/core/report/test_range_instances.py",
)
# Objects of Python come from malloc, too, where the sanitizer knows their ends. Python itself leaks
# when it ends: leaks are looked for by the fuzz targets, which have no Python around them.
OPTIONS = {"ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"}
RUN = """
import sys
from pathlib import Path
from flame.core.compiled import library
library.LIBRARY = Path(sys.argv[1])
assert library.compiled()._name == sys.argv[1]
import pytest
sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-m", "not deep", *sys.argv[2:]]))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled part with the address and undefined-behaviour sanitizers."""
    target = tmp_path_factory.mktemp("sanitized") / "libflamecore.so"
    try:
        build(target, [*SANITIZED, *STRICT])
    except BuildError as error:
        if "failed" in str(error):
            raise
        pytest.skip(str(error))
    return target


def runtime() -> str:
    """The library of the address sanitizer, which a program that has none must load first."""
    command = [*compiler(), "-print-file-name=libasan.so"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    if not Path(done.stdout.strip()).is_absolute():
        pytest.skip(f"{command[0]} has no address sanitizer")
    return done.stdout.strip()


def test_the_differential_tests_pass_with_sanitizers(library: Path) -> None:
    env = {name: value for name, value in os.environ.items() if name != "FLAME_NO_NATIVE"}
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(library), *TESTS],
        cwd=ROOT,
        env={**env, **OPTIONS, "LD_PRELOAD": runtime()},
        capture_output=True,
        text=True,
        timeout=10 * PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-20_000:]
    assert " passed" in done.stdout
    assert "runtime error" not in done.stderr and "Sanitizer" not in done.stderr
