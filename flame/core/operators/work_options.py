"""Read what the user says of peaks, types and the model."""

from __future__ import annotations

from flame.core.errors import UsageError
from flame.core.lazy_regex import lazy_regex
from flame.core.names.tensors import bytes_of
from flame.core.operators.peaks import PRECISIONS, TF32
from flame.core.operators.work import WorkOptions

_MEMORY = "mem"
_KEYS = (*PRECISIONS, TF32, _MEMORY)
_VALUE = lazy_regex(r"\d{1,9}(?:\.\d{1,6})?")
_COUNT = lazy_regex(r"\d{1,6}(?:\.\d{1,6})?(?:[eE]\+?\d{1,2})?")
_MOST_FLOPS = 1e24


def read_work_options(peak: str | None, dtype: str | None, model_flops: str | None) -> WorkOptions:
    """Read ``--peak bf16=989,mem=3350`` (TFLOP/s and GB/s), ``--dtype`` and ``--model-flops``.

    Raises UsageError for what is none of these.
    """
    peaks = _peaks(peak)
    memory = peaks.pop(_MEMORY, None)
    return WorkOptions(
        tflops=peaks,
        bandwidth=None if memory is None else memory * 1e9,
        dtype=_dtype(dtype),
        model_flops=_flops(model_flops),
    )


def _peaks(text: str | None) -> dict[str, float]:
    if text is None:
        return {}
    found = dict[str, float]()
    for part in text.split(","):
        key, sign, value = part.strip().partition("=")
        if key not in _KEYS or not sign or not _VALUE.fullmatch(value) or not float(value):
            keys = ", ".join(_KEYS)
            raise UsageError(
                f"--peak: '{part.strip()}' is not one of {keys} with a number above 0, "
                "as in bf16=989,mem=3350 (TFLOP/s, GB/s)"
            )
        found[key] = float(value)
    return found


def _dtype(text: str | None) -> str:
    if text is not None and bytes_of(text) is None:
        raise UsageError(f"--dtype {text}: use a type of PyTorch, such as bf16, half or float32")
    return text or ""


def _flops(text: str | None) -> int | None:
    if text is None:
        return None
    if not _COUNT.fullmatch(text) or not 1 <= float(text) <= _MOST_FLOPS:
        raise UsageError(f"--model-flops: '{text}' is no number of FLOPs such as 6.2e15")
    return int(float(text))
