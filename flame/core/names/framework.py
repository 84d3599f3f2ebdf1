"""List the frames that frameworks put between those of the user: wrappers, loops, threads."""

from __future__ import annotations

from collections.abc import Iterable

FRAMEWORK = (
    r"torch/nn/modules/module\.py:(.*\.)?_(wrapped_)?call_impl$",
    r"torch/_dynamo/(eval_frame|external_utils|convert_frame)\.py:",
    r"torch/(_compile|_ops|_jit_internal|overrides)\.py:",
    r"torch/utils/_contextlib\.py:",
    r"torch/autograd/(grad_mode|function|graph)\.py:",
    r"torch/amp/autocast_mode\.py:",
    r"torch/optim/optimizer\.py:(.*\.)?(profile_hook_step|_use_grad|wrapper)",
    r"torch/distributed/(run|launch|launcher|elastic)\b",
    r"(^|/)(runpy|threading|contextlib|functools)\.py:",
    r"^<frozen (runpy|importlib|zipimport)",
    r"(^|/)(asyncio|importlib|multiprocessing|concurrent/futures)/",
)
"""Regular expressions, each found anywhere in ``FILE:NAME`` of a frame."""


def joined(patterns: Iterable[str]) -> str:
    """Make one regular expression that finds what any of ``patterns`` does."""
    return "|".join(patterns)


USUAL = joined(FRAMEWORK)
