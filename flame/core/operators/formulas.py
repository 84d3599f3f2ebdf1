"""List the operators whose work is known from their inputs, and count it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from flame.core.operators import attention, convolutions
from flame.core.operators.attention import AttentionSchema
from flame.core.operators.cost import Cost
from flame.core.operators.inputs import NoFormulaError, OperatorInputs
from flame.core.operators.products import product

_LARGEST = 1 << 56
"""FLOPs, or bytes, of one call: the first take a minute of the fastest GPU. More is damage."""

_Formula = Callable[[OperatorInputs], Cost]

_PRODUCTS: dict[str, _Formula] = {
    "aten::mm": partial(product, added=0, batched=0),
    "aten::addmm": partial(product, added=1, batched=0),
    "aten::_addmm_activation": partial(product, added=1, batched=0),
    "aten::_scaled_mm": partial(product, added=0, batched=0),
    "aten::bmm": partial(product, added=0, batched=1),
    "aten::baddbmm": partial(product, added=1, batched=1),
}

_FORWARD = {
    "aten::_scaled_dot_product_flash_attention": AttentionSchema(0, 4, (0, 1, 2)),
    "aten::_scaled_dot_product_efficient_attention": AttentionSchema(0, 6, (0, 1, 2)),
    "aten::_scaled_dot_product_cudnn_attention": AttentionSchema(0, 6, (0, 1, 2)),
    "aten::_flash_attention_forward": AttentionSchema(0, 8, (0, 1, 2), last=True, lengths=3),
    "aten::_efficient_attention_forward": AttentionSchema(
        0, 9, (0, 1, 2), last=True, lengths=4, kinds=True
    ),
}
_BACKWARD = {
    "aten::_scaled_dot_product_flash_attention_backward": AttentionSchema(1, 11, (), lengths=6),
    "aten::_scaled_dot_product_efficient_attention_backward": AttentionSchema(1, 11, ()),
    "aten::_scaled_dot_product_cudnn_attention_backward": AttentionSchema(1, 14, (), lengths=9),
    "aten::_flash_attention_backward": AttentionSchema(1, 11, (), last=True, lengths=6),
    "aten::_efficient_attention_backward": AttentionSchema(
        1, 14, (), last=True, lengths=6, kinds=True
    ),
}
"""Where the schemas of ATen's native_functions.yaml have what counts, as of PyTorch 2.13."""

_CONVOLUTIONS: dict[str, _Formula] = {
    "aten::convolution": convolutions.forward,
    "aten::_convolution": convolutions.forward,
    "aten::convolution_backward": convolutions.backward,
}

_FORMULAS: dict[str, _Formula] = {
    **_PRODUCTS,
    **_CONVOLUTIONS,
    **{name: partial(attention.forward, schema=schema) for name, schema in _FORWARD.items()},
    **{name: partial(attention.backward, schema=schema) for name, schema in _BACKWARD.items()},
}

OPERATORS = frozenset(_FORMULAS)
"""Operators with a formula, by PyTorch's names. Composites have none: their parts count."""

WITH_VALUES = frozenset((*_FORWARD, *_BACKWARD, *_CONVOLUTIONS))
"""Those of which more than tensors counts: strides and groups, or whether a mask is causal."""


def cost_of(operator: str, inputs: OperatorInputs) -> Cost | None:
    """Count the work of a call of ``operator``; None where its inputs do not tell it."""
    formula = _FORMULAS.get(operator)
    if formula is None:
        return None
    try:
        cost = formula(inputs)
    except NoFormulaError:
        return None
    return cost if max(cost.flops, cost.bytes or 0) <= _LARGEST else None
