"""Hold what a call of an operator computes and moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from flame.core.operators.inputs import OperatorInputs


class Cost(NamedTuple):
    """Hold the work of one call of an operator.

    ``flops`` are those of `torch.utils.flop_counter`: a multiply-add is 2, no mask, no bias, no
    softmax. ``bytes`` is a lower bound of what moves: each element that exists read once, each one
    of the output written once; None where types, or what comes out, are not known. ``precision`` is
    the type of what is multiplied, as `precision_of` names it, empty where that is not known.
    Where a mask is ``causal``, ``unmasked`` is the part of ``flops`` that it leaves, None where the
    shapes do not tell.
    """

    flops: int
    bytes: int | None
    precision: str
    causal: bool = False
    unmasked: float | None = 1.0


def least_bytes(inputs: OperatorInputs, read: Sequence[int], written: int) -> int | None:
    """Add up the bytes of the tensors that are ``read``, by place, and of what is ``written``.

    That is so many elements, of the type of the last one that is read. None where a type is not
    known.
    """
    sizes = [inputs.bytes_of_element(place) for place in read]
    if None in sizes:
        return None
    whole = written * (sizes[-1] or 0)
    for place, size in zip(read, sizes, strict=True):
        whole += inputs.distinct(place) * (size or 0)
    return whole
