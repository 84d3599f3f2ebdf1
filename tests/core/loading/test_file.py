"""Opening a file: the format is found by content, and the load can be watched and stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.errors import CancelledError, InputError
from flame.core.loading.many import load
from flame.core.options import LoadOptions
from tests.support.profiles.project_tree import project_tree
from tests.support.profiles.recorded import leaves
from tests.support.writers.nsysfile import START_END, NsysFile


@pytest.fixture
def path(tmp_path: Path, trace: NsysFile) -> Path:
    """One kernel, launched in a range with an id in its name and in a start/end range."""
    trace.nvtx("step, op_id = 7", 0, 100)
    trace.nvtx("request", 5, 100, type=START_END)
    trace.api("cudaLaunchKernel_v7000", 20, 25)
    trace.kernel("gemm", 1_000, 1_010)
    trace.db.commit()
    path = tmp_path / "trace.sqlite"
    path.write_bytes(trace.db.serialize())
    return path


@pytest.mark.parametrize("name", ["trace", "trace.json.gz", "trace.nsys-rep"])
def test_a_wrong_suffix_is_no_obstacle(name: str, path: Path) -> None:
    assert load(path.rename(path.with_name(name))).gpu_time == 10


def test_a_path_may_be_a_text(path: Path) -> None:
    assert load(str(path)).meta.path == str(path)


def test_something_else_is_no_trace(path: Path) -> None:
    path.write_text("not a trace")
    with pytest.raises(InputError, match="not a trace flame knows"):
        load(path)


@pytest.mark.parametrize(
    ("options", "ranges"),
    [
        (LoadOptions(), ("step",)),
        (LoadOptions(nvtx_names="raw"), ("step, op_id = 7",)),
        (LoadOptions(nvtx_start_end=True), ("step", "request")),
    ],
)
def test_options_are_heeded(options: LoadOptions, ranges: tuple[str, ...], path: Path) -> None:
    assert leaves(project_tree(load(path, options), levels="nvtx")) == {ranges: 10}


def test_progress_names_each_stage(path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    load(path, progress=lambda *told: seen.append(told))
    assert [stage for stage, _, _ in seen] == [
        "reading GPU activities",
        "reading API calls",
        "reading NVTX ranges",
        "joining launches",
        "nesting ranges",
        "attributing",
        "placing samples",
        "done",
    ]
    reading = [done for stage, done, _ in seen if "reading" in stage]
    assert reading[0] > 0 and reading == pytest.approx([reading[0] * part for part in (1, 2, 4)], 3)


@pytest.mark.parametrize("at", ["reading API calls", "attributing"])
def test_a_load_can_be_stopped_at_any_stage(at: str, path: Path) -> None:
    def stop(stage: str, done: int, expected: int) -> None:
        if stage == at:
            raise CancelledError("stopped")

    with pytest.raises(CancelledError):
        load(path, progress=stop)
    assert load(path).gpu_time == 10
