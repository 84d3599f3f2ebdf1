"""A program that names millions of things keeps its memory, and is told what was left unnamed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from flame.core.loading.many import load
from tests.inject.nvtx.nvtx_recorded import DOMAIN, Recorded
from tests.support.waiting import PATIENCE

MOST_KIB = 90 * 1024  # 64 MiB of names, and what else a recording takes
MOST_DOMAINS = 4096
Many = Callable[[str, int], Recorded]


@pytest.fixture
def many(
    compiled: Callable[..., Path], injected_env: Callable[..., dict[str, str]], tmp_path: Path
) -> Many:
    """Runs a program that makes ``count`` of ``what``, which must not take much memory."""

    def run(what: str, count: int) -> Recorded:
        command = [str(compiled("nvtx_many.cpp")), what, str(count)]
        env = injected_env(tmp_path, fake=False)
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=PATIENCE)
        assert (done.returncode, done.stderr) == (0, "")
        assert int(done.stdout) < MOST_KIB
        (dump,) = tmp_path.glob("*.fdump")
        return Recorded(dump)

    return run


def warning(recorded: Recorded, beyond: str) -> str:
    (found,) = (text for text in load(recorded.path).warnings if beyond in text)
    return found


def test_domains_beyond_the_limit_are_one_and_are_counted(many: Many) -> None:
    recorded = many("domains", 1_000_000)
    assert [range.domain for range in recorded.ended if range.name == "in a domain"] == [
        "domain 0",
        "[further domains]",
    ]
    assert len(recorded.names(DOMAIN)) == MOST_DOMAINS + 1
    assert recorded.dropped == 1_000_000 - MOST_DOMAINS
    assert warning(recorded, "[further domains]").startswith("995,904 NVTX domains, strings")


@pytest.mark.deep
def test_strings_beyond_the_limit_are_one_and_are_counted(many: Many) -> None:
    recorded = many("strings", 1_000_000)
    names = [range.name for range in recorded.ended]
    assert names == ["begin", "text 0", "[further strings]"]
    assert 600_000 < recorded.dropped < 900_000
    assert warning(recorded, "[further strings]").startswith(f"{recorded.dropped:,} NVTX domains")


@pytest.mark.parametrize(("what", "count"), [("categories", 500_000), ("schemas", 15_000)])
def test_other_names_are_bounded_too(many: Many, what: str, count: int) -> None:
    recorded = many(what, count)
    assert (recorded.dropped > 0) == (what == "schemas")  # a category's name is in the dump


def test_ranges_that_never_end_are_bounded_in_memory_and_counted(many: Many) -> None:
    recorded = many("open ranges", 10_000)
    # Of 300 MB of texts started 64 MiB are kept, and pushed 16 MiB.
    assert recorded.dropped == 2 * 10_000 - (64 << 20) // 30_000 - (16 << 20) // 30_000 - 1
    warning(recorded, "could not be written: there was no memory for them")
