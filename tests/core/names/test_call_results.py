"""Names of CUDA's errors: those of its headers, where these are installed."""

from __future__ import annotations

import re
import sysconfig
from pathlib import Path

import pytest

from flame.core.names.call_results import NOT_READY, result_name

INCLUDED = sorted(Path(sysconfig.get_path("purelib"), "nvidia").glob("*/include"))
UNUSED = 10_000  # cudaErrorApiFailureBase: nothing returns it any more


def enumerated(name: str, prefix: str) -> dict[int, str]:
    """The errors that a header names."""
    files = [folder / name for folder in INCLUDED if (folder / name).exists()]
    if not files:
        pytest.skip("CUDA's headers are not installed")
    text = re.sub(r"/\*.*?\*/", "", files[-1].read_text(), flags=re.DOTALL)
    found = re.findall(rf"\b({prefix}\w+)\s*=\s*(\d+)", text)
    return {int(value): name for name, value in found if int(value) != UNUSED}


@pytest.mark.parametrize(
    ("header", "prefix", "call"),
    [("cuda.h", "CUDA_ERROR_", "cuMemAlloc_v2"), ("driver_types.h", "cudaError", "cudaMalloc")],
)
def test_all_of_a_header_and_no_others(header: str, prefix: str, call: str) -> None:
    told = {value: result_name(call, value) for value in range(-1, 1_100)}
    known = {value: name for value, name in told.items() if name}
    expected = enumerated(header, prefix)
    # Those of another version of CUDA may be missing there.
    assert {value: known.get(value) for value in expected} == expected
    assert len(known) <= len(expected) + 5


def test_calls_of_other_interfaces_have_none() -> None:
    assert result_name("hipMalloc", 2) is None
    assert result_name("cuEventQuery", NOT_READY) == "CUDA_ERROR_NOT_READY"
