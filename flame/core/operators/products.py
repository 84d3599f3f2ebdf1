"""Count what matrix products compute, and the bytes they move at least."""

from __future__ import annotations

from math import prod

from flame.core.operators.cost import Cost, least_bytes
from flame.core.operators.inputs import NoFormulaError, OperatorInputs


def product(inputs: OperatorInputs, added: int, batched: int) -> Cost:
    """Count a product of two matrices, or of two batches of them; a multiply-add counts 2.

    They come behind as many tensors as are ``added`` to the product (0 or 1); ``batched`` (0 or 1)
    is the number of dimensions before those of a matrix.
    """
    left, right = (inputs.shape(added + at, 2 + batched) for at in (0, 1))
    if left[-1] != right[-2] or left[:-2] != right[:-2]:
        raise NoFormulaError
    read = tuple(range(added + 2))
    return Cost(
        flops=2 * prod(left) * right[-1],
        bytes=least_bytes(inputs, read, prod(left[:-1]) * right[-1]),
        precision=inputs.precision(added, added + 1),
    )
