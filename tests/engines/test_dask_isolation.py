"""What Dask starts is isolated from the current folder, which may be hostile."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from flame.core.errors import InputError

pytest.importorskip("distributed")

import dask

from flame.engines.dask_cluster import dask_engine


@pytest.fixture
def pythons(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The Pythons that Slurm has been told to start; it refuses every job."""
    asked: list[str] = []

    def refuse(*, python: str) -> None:
        asked.append(python)
        raise RuntimeError("no jobs here")

    monkeypatch.setitem(sys.modules, "dask_jobqueue", SimpleNamespace(SLURMCluster=refuse))
    return asked


@pytest.fixture
def sbatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of that name; the test's folder is in PATH."""
    program = tmp_path / "sbatch"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.usefixtures("sbatch")
@pytest.mark.parametrize(("named", "words"), [(None, f"{sys.executable} -P"), ("py3", "py3 -P")])
def test_jobs_of_slurm_do_not_import_from_the_folder_that_they_begin_in(
    named: str | None, words: str, pythons: list[str]
) -> None:
    with (
        dask.config.set({"jobqueue.slurm.python": named}),
        pytest.raises(InputError, match="no jobs here"),
        dask_engine("slurm", 1),
    ):
        pytest.fail("has a cluster")
    assert pythons == [words]


def test_slurm_without_sbatch_is_told_before_any_wait(
    pythons: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="no sbatch in PATH"), dask_engine("slurm", 1):
        pytest.fail("has a cluster")
    assert pythons == []


def test_an_endless_file_is_no_scheduler() -> None:
    wrong = "/dev/zero: is not the file of a Dask scheduler"
    with pytest.raises(InputError, match=wrong), dask_engine("/dev/zero", 1):
        pytest.fail("has a cluster")


@pytest.mark.parametrize(
    ("given", "path"), [(".:/bin::x:/sbin", "/bin:/sbin"), (":", os.defpath), (None, os.defpath)]
)
def test_the_folder_is_on_no_path_while_dask_runs(
    given: str | None, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    during: list[tuple[str | None, ...]] = []
    monkeypatch.setattr(
        "flame.engines.dask_cluster._local",
        lambda workers: during.append(tuple(map(os.environ.get, ("PATH", "PYTHONSAFEPATH")))),
    )
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    if given is None:
        monkeypatch.delenv("PATH")
    else:
        monkeypatch.setenv("PATH", given)
    with suppress(TypeError, AttributeError), dask_engine("local", 1):
        pytest.fail("has a cluster")
    assert during == [(path, "1")]
    assert (os.environ.get("PATH"), os.environ.get("PYTHONSAFEPATH")) == (given, None)
