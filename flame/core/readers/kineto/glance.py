"""Name the GPUs of a trace at a glance: one of thousands of files in a folder."""

from __future__ import annotations

from flame.core.lazy_regex import lazy_regex
from flame.core.readers.kineto.metadata import decode_devices

_DEVICES = lazy_regex(rb'"deviceProperties"\s*:\s*(\[[^\]]*+\])')
_OURS = lazy_regex(
    rb'"(?:schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds)"\s*:'
    rb'|"cat"\s*:\s*"(?:cpu_op|user_annotation|python_function|kernel|gpu_\w+|cuda_\w+|hip_\w+'
    rb'|Operator|Kernel|Mem(?:cpy|set)|Runtime)"'
)


def glance(head: bytes) -> tuple[str, ...] | None:
    """Name the GPUs of the machine that was recorded; none where the beginning does not say.

    None where nothing in ``head``, the beginning of a Chrome trace, is of the PyTorch profiler.
    """
    if not _OURS.search(head):
        return None
    found = _DEVICES.search(head)
    return tuple(device.name for device in decode_devices(found[1])) if found else ()
