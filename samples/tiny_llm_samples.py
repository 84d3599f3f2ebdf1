"""What the kernels of `llm_kernels.cubin` wait for, made up: a script for the double of the driver.

For each kernel ns of a run, and for each instruction that warps are found at, by its offset, the
shares of the reasons. As on a GPU a warp is found at the instruction that it cannot issue yet:
where a loaded value is used, not where it is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from samples.tiny_llm import GEMM, NORM, SMALL_GEMM, SOFTMAX

PER_US = 4
"""Samples for each µs of a kernel, of all of the GPU."""

Waits = Mapping[int, Mapping[str, int]]

_GEMM: Waits = {
    0x0050: {"imc_miss": 3, "no_instructions": 4},
    0x00A0: {"long_scoreboard": 2, "short_scoreboard": 3},
    0x0240: {"imc_miss": 4, "wait": 3, "selected": 3},
    0x0260: {"selected": 4, "lg_throttle": 14, "not_selected": 3},
    0x0280: {"selected": 4, "lg_throttle": 22, "not_selected": 2},
    0x02E0: {"long_scoreboard": 236, "long_scoreboard_not_issued": 171, "selected": 4},
    0x02F0: {"long_scoreboard": 41, "mio_throttle": 8, "selected": 4},
    0x0300: {"barrier": 118, "barrier_not_issued": 74, "selected": 4, "wait": 5},
    0x0310: {"selected": 17, "mio_throttle": 6, "wait": 9, "not_selected": 8},
    0x0330: {"selected": 17, "mio_throttle": 12, "not_selected": 7},
    0x0350: {"selected": 17, "mio_throttle": 18, "not_selected": 9},
    0x0360: {"selected": 16, "mio_throttle": 21, "not_selected": 6},
    0x0370: {"selected": 17, "mio_throttle": 26, "not_selected": 7},
    0x0380: {"short_scoreboard": 149, "short_scoreboard_not_issued": 83, "selected": 17},
    0x0390: {"selected": 16, "mio_throttle": 11},
    0x03A0: {"short_scoreboard": 61, "selected": 17, "wait": 21, "math_pipe_throttle": 6},
    0x03B0: {"selected": 17, "mio_throttle": 14},
    0x03C0: {"short_scoreboard": 38, "selected": 17, "wait": 24, "math_pipe_throttle": 5},
    0x0420: {"short_scoreboard": 57, "selected": 17, "wait": 22, "math_pipe_throttle": 7},
    0x0430: {"short_scoreboard": 33, "selected": 17, "wait": 25, "math_pipe_throttle": 6},
    0x0440: {"short_scoreboard": 19, "selected": 17, "wait": 26, "math_pipe_throttle": 8},
    0x0450: {"short_scoreboard": 11, "selected": 17, "wait": 24, "math_pipe_throttle": 7},
    0x0460: {"selected": 17, "wait": 27, "math_pipe_throttle": 9, "not_selected": 6},
    0x0470: {"selected": 17, "branch_resolving": 19, "wait": 11},
    0x0480: {"barrier": 163, "barrier_not_issued": 97, "selected": 4},
    0x0490: {"selected": 4, "branch_resolving": 6},
    0x04D0: {"selected": 1, "imc_miss": 2, "long_scoreboard": 1},
    0x04E0: {"drain": 9, "selected": 1},
}
# The small tile waits more at barriers and for global memory: half as much work between them.
_SMALL_GEMM: Waits = {
    offset: {
        reason: count * (3 if "barrier" in reason or "long_scoreboard" in reason else 2)
        for reason, count in reasons.items()
    }
    for offset, reasons in _GEMM.items()
}
_SOFTMAX: Waits = {
    0x0010: {"no_instructions": 6, "imc_miss": 5},
    0x0080: {"imc_miss": 8, "short_scoreboard": 3},
    0x0160: {"selected": 4, "lg_throttle": 2, "wait": 6},
    0x01B0: {"long_scoreboard": 132, "long_scoreboard_not_issued": 118, "selected": 4},
    0x01C0: {"selected": 4, "branch_resolving": 6, "wait": 4},
    0x0200: {"short_scoreboard": 7, "selected": 1},
    0x0220: {"short_scoreboard": 7, "selected": 1},
    0x0240: {"short_scoreboard": 7, "selected": 1},
    0x0270: {"short_scoreboard": 6, "selected": 1},
    0x0290: {"short_scoreboard": 7, "selected": 1},
    0x03C0: {"selected": 4, "lg_throttle": 3},
    0x0450: {"long_scoreboard": 87, "long_scoreboard_not_issued": 79, "selected": 4},
    0x0480: {"wait": 13, "selected": 4},
    0x0490: {"wait": 14, "selected": 4},
    0x04C0: {"wait": 12, "selected": 4, "math_pipe_throttle": 2},
    0x04E0: {"wait": 13, "mio_throttle": 26, "selected": 4},
    0x04F0: {"short_scoreboard": 58, "short_scoreboard_not_issued": 51, "selected": 4},
    0x0500: {"wait": 12, "selected": 4},
    0x0510: {"selected": 4, "lg_throttle": 9},
    0x0550: {"short_scoreboard": 8, "selected": 1},
    0x0570: {"short_scoreboard": 7, "selected": 1},
    0x0590: {"short_scoreboard": 7, "selected": 1},
    0x05B0: {"short_scoreboard": 8, "selected": 1},
    0x06A0: {"selected": 4, "lg_throttle": 3, "wait": 5},
    0x06B0: {"selected": 4, "mio_throttle": 41, "wait": 3},
    0x06D0: {"short_scoreboard": 119, "short_scoreboard_not_issued": 104, "selected": 4},
    0x06E0: {"wait": 14, "selected": 4, "math_pipe_throttle": 3},
    0x06F0: {"long_scoreboard": 64, "mio_throttle": 33, "selected": 4},
    0x0700: {"wait": 11, "selected": 4},
    0x0720: {"wait": 14, "selected": 4},
    0x0730: {"short_scoreboard": 47, "selected": 4, "branch_resolving": 9},
    0x0780: {"selected": 4, "lg_throttle": 7, "wait": 6},
    0x07D0: {"selected": 4, "branch_resolving": 7},
    0x07E0: {"drain": 12, "selected": 1},
}
_NORM: Waits = {
    0x0010: {"no_instructions": 5, "imc_miss": 4},
    0x01C0: {"selected": 4, "lg_throttle": 3, "wait": 4},
    0x01D0: {"selected": 4, "lg_throttle": 9},
    0x0240: {"long_scoreboard": 214, "long_scoreboard_not_issued": 197, "selected": 4},
    0x0250: {"wait": 13, "selected": 4},
    0x0260: {"selected": 4, "lg_throttle": 11},
    0x0270: {"selected": 4, "branch_resolving": 6},
    0x02A0: {"short_scoreboard": 8, "selected": 1},
    0x02C0: {"short_scoreboard": 7, "selected": 1},
    0x02E0: {"short_scoreboard": 8, "selected": 1},
    0x0300: {"short_scoreboard": 7, "selected": 1},
    0x0360: {"short_scoreboard": 8, "selected": 1},
    0x03E0: {"short_scoreboard": 6, "imc_miss": 3, "selected": 1},
    0x0400: {"short_scoreboard": 9, "selected": 1},
    0x0570: {"short_scoreboard": 8, "selected": 1},
    0x05B0: {"selected": 4, "lg_throttle": 4},
    0x05C0: {"selected": 4, "lg_throttle": 12},
    0x0670: {"long_scoreboard": 171, "long_scoreboard_not_issued": 158, "selected": 4},
    0x0680: {"long_scoreboard": 58, "wait": 9, "selected": 4},
}
_KERNELS: Mapping[str, tuple[int, int, int, Waits]] = {
    GEMM: (490_304, 32, 8320, _GEMM),
    SMALL_GEMM: (182_272, 32, 2112, _SMALL_GEMM),
    SOFTMAX: (39_168, 24, 0, _SOFTMAX),
    NORM: (28_416, 20, 0, _NORM),
}
"""By name: ns, registers, bytes of shared memory, and what warps wait for."""


def script() -> str:
    """The script, for FAKE_SAMPLES."""
    return "".join(f"{line}\n" for line in _lines())


def _lines() -> Iterator[str]:
    for name, (ns, registers, shared, waits) in _KERNELS.items():
        yield f"kernel {name} {ns} {registers} {shared} 0"
        total = sum(sum(reasons.values()) for reasons in waits.values())
        wanted = PER_US * ns // 1000
        for offset, reasons in waits.items():
            for reason, share in reasons.items():
                yield f"sample {name} {offset:#x} {reason} {max(share * wanted // total, 1)}"
