"""What all tests share: where real traces lie, the tiers, a temporary folder."""

from __future__ import annotations

import gc
import signal
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support import tiers
from tests.support.paths import ROOT

# Real traces are not part of the repository; where they are absent, the tests that need them skip.
TRACES = ROOT.parent / "shared" / "traces"

# For parametrisation, by file name. Empty where the traces are absent: pytest then skips the test.
NSYS_TRACES = sorted(path.name for path in TRACES.glob("nsys/*.sqlite"))


def is_small(path: Path) -> bool:
    """Whether the quick tier, too, has the time to work out all of a real trace by plain loops."""
    return path.exists() and path.stat().st_size < (100_000 if path.suffix == ".gz" else 1 << 20)


EVERY_NSYS_TRACE = tiers.deep_except(
    [name for name in NSYS_TRACES if is_small(TRACES / "nsys" / name)], NSYS_TRACES
)

needs_traces = pytest.mark.skipif(not NSYS_TRACES, reason=f"no real traces in {TRACES}")

# What a shell starts in the background ignores ctrl+c, and what nohup starts the end of the
# terminal; so would every program that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

tiers.load_profiles()


# Objects made before garbage is looked for among the youngest, and how often among older ones. By
# Python's own numbers (700, 10, 10) that takes up to 30 % of the time of tests that open the app.
GC_THRESHOLDS = (50_000, 20, 100)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests that are marked as long first: at the end only one processor would have work."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_collection_finish() -> None:
    """Exempt modules and tests from garbage collection, which some tests run to find leaks."""
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Note the tests of the quick tier that were slow."""
    if terminalreporter.config.getoption("hypothesis_profile") == tiers.DEEP:
        return
    slow = [report for report in terminalreporter.getreports("passed") if tiers.is_slow(report)]
    if slow:
        terminalreporter.section(f"over {tiers.SLOW:g} s: mark deep or make faster")
    for report in sorted(slow, key=lambda report: -report.duration):
        terminalreporter.write_line(f"{report.duration:6.1f} s  {report.nodeid}")


@pytest.fixture(scope="session", autouse=True)
def _temporary_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What this process and its children make in the temporary folder, no other worker sees.

    Nor is anything read or written of what a developer's flame remembers.

    Open to all users as /tmp is, for some tests become another; and short, for sockets lie in it.
    """
    tmp_path_factory.getbasetemp()  # pytest's own folder stays where a developer looks for it
    private = TemporaryDirectory(prefix="flame-tests-", ignore_cleanup_errors=True)
    with private as folder, pytest.MonkeyPatch.context() as patch:
        Path(folder).chmod(0o1777)
        patch.setenv("TMPDIR", folder)
        patch.setenv("XDG_STATE_HOME", f"{folder}/state")
        patch.setattr(tempfile, "tempdir", folder)
        yield


@pytest.fixture(scope="module", autouse=True)
def _caches_of_the_module(request: pytest.FixtureRequest) -> Iterator[None]:
    """What functions of a module keep of large traces, is let go with the module.

    Each collection of garbage would look through it, 0.8 s after tests/system.
    """
    yield
    for function in vars(request.module).values():
        own = getattr(function, "__module__", None) == request.module.__name__
        if own and hasattr(function, "cache_clear"):
            function.cache_clear()


@pytest.fixture(scope="module")
def earlier_exempt() -> None:
    """What is left of earlier modules, above all what they imported, is exempt from collections.

    For modules that collect garbage after each test: looking through it takes up to 1 s each.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture
def nsys_trace() -> Callable[[str], Path]:
    """Path of the real Nsight Systems export of that file name; skips the test if it is absent."""

    def find(name: str) -> Path:
        path = TRACES / "nsys" / name
        if not path.exists():
            pytest.skip(f"no real trace {path}")
        return path

    return find


@pytest.fixture(scope="module")
def trace_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where random traces are written, one after the other."""
    return tmp_path_factory.mktemp("random") / "trace.sqlite"
