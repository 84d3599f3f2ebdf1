"""Tables of `flame report` that are there only when they are asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flame.cli.main import main
from tests.support.writers.nsysfile import NsysFile


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "trace.sqlite"
    with NsysFile(path) as file:
        file.nvtx("step", 0, 100)
        file.api("cudaLaunchKernel_v7000", 10, 20, corr=1)
        file.kernel("gemm", 30, 40, corr=1)
    return str(path)


@pytest.mark.parametrize(
    ("by", "section", "table"),
    [
        ("config", "kernels", "by_config"),
        ("pace", "launches", "pace"),
        ("row", "api", "by_row"),
        ("path", "ranges", "by_path"),
    ],
)
def test_details(
    trace: str, by: str, section: str, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["report", trace, "--json", "--section", section]
    assert main(command) == 0
    assert table not in json.loads(capsys.readouterr().out)[section]
    assert main([*command, "--by", by]) == 0
    assert table in json.loads(capsys.readouterr().out)[section]


def test_unknown_details_are_refused(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", trace, "--by", "pages"]) == 2
    assert "--by pages: is none of config, pace, row, path" in capsys.readouterr().err
