"""Count what scaled dot-product attention computes, and the bytes it moves at least."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from flame.core.operators.cost import Cost, least_bytes
from flame.core.operators.inputs import NoFormulaError, OperatorInputs, Shape


class AttentionSchema(NamedTuple):
    """Say where a schema of attention has what counts, by place.

    ``query`` is followed by key and value. They are [batch, heads, length, width], or with the
    heads ``last``, [batch, length, heads, width]. ``mask`` is that of the causal mask: a flag, or
    with ``kinds`` a number that is 0 without one. Lengths that tensors at ``lengths`` hold are not
    known. ``read`` are all tensors that are read.
    """

    query: int
    mask: int
    read: tuple[int, ...]
    last: bool = False
    lengths: int | None = None
    kinds: bool = False


def forward(inputs: OperatorInputs, schema: AttentionSchema) -> Cost:
    """Count queries times keys, and weights times values: 2·b·h·sq·sk·(d + dv)."""
    query, key, value = _tensors(inputs, schema)
    batch, heads, length, width = query
    flops = 2 * batch * heads * length * key[2] * (width + value[3])
    out = prod(query[:3]) * value[3]
    moved = least_bytes(inputs, schema.read, out)
    return _masked(inputs, schema, Cost(flops, moved, _precision(inputs, schema)), length, key[2])


def backward(inputs: OperatorInputs, schema: AttentionSchema) -> Cost:
    """Count the scores again, and gradients of scores, queries, keys and values."""
    query, key, value = _tensors(inputs, schema)
    batch, heads, length, width = query
    flops = 2 * batch * heads * length * key[2] * (3 * width + 2 * value[3])
    return _masked(inputs, schema, Cost(flops, None, _precision(inputs, schema)), length, key[2])


def _precision(inputs: OperatorInputs, schema: AttentionSchema) -> str:
    return inputs.precision(*range(schema.query, schema.query + 3))


def _tensors(inputs: OperatorInputs, schema: AttentionSchema) -> tuple[Shape, Shape, Shape]:
    """Query, key and value as [batch, heads, length, width]; fewer key heads are repeated."""
    if schema.lengths is not None and inputs.is_given(schema.lengths):
        raise NoFormulaError
    found = [inputs.shape(schema.query + at, 4) for at in range(3)]
    if schema.last:
        found = [(batch, heads, length, width) for batch, length, heads, width in found]
    query, key, value = found
    fits = query[0] == key[0] == value[0] and query[3] == key[3] and key[1:3] == value[1:3]
    if not fits or not key[1] or query[1] % key[1]:
        raise NoFormulaError
    return query, key, value


def _masked(
    inputs: OperatorInputs, schema: AttentionSchema, cost: Cost, queries: int, keys: int
) -> Cost:
    """The same ``cost`` with what a causal mask leaves of it, if there is one.

    Of scores of ``queries`` and as many ``keys`` it leaves (s + 1) / 2s. Where there are not as
    many, operators differ in which corner it begins.
    """
    try:
        masked = any(inputs.numbers(schema.mask)) if schema.kinds else inputs.flag(schema.mask)
    except NoFormulaError:  # not recorded
        return cost._replace(unmasked=None)
    if not masked:
        return cost
    left = (queries + 1) / (2 * queries) if queries and queries == keys else None
    return cost._replace(causal=True, unmasked=left)
