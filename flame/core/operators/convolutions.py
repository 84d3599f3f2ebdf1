"""Count what convolutions compute, and the bytes they move at least."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from flame.core.operators.cost import Cost, least_bytes
from flame.core.operators.inputs import NoFormulaError, OperatorInputs, Shape

_SPATIAL = (3, 4, 5)
"""Dimensions of images: one to three beside those of the batch and the channels."""


class _Convolution(NamedTuple):
    """One convolution: input [N, C, …], weight [O, C/groups, …], or transposed [C, O/groups, …]."""

    image: Shape
    weight: Shape
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    transposed: bool
    more: tuple[int, ...]
    groups: int

    @classmethod
    def read(cls, inputs: OperatorInputs, image: int, first: int) -> _Convolution:
        """Read one whose input is at ``image``, the weight behind it, and its stride at ``first``.

        NoFormulaError where it does not fit together.
        """
        shape = inputs.shape(image, *_SPATIAL)
        lists = [inputs.numbers(first + at) for at in (0, 1, 2, 4)]
        count = len(shape) - 2
        stride, padding, dilation, more = (one * count if len(one) == 1 else one for one in lists)
        groups = inputs.numbers(first + 5)
        found = cls(
            shape,
            inputs.shape(image + 1, len(shape)),
            *(stride, padding, dilation, inputs.flag(first + 3), more),
            groups[0] if len(groups) == 1 else 0,
        )
        if any(len(one) != count for one in (stride, padding, dilation, more)):
            raise NoFormulaError
        if not found._fits():
            raise NoFormulaError
        return found

    def _fits(self) -> bool:
        channels = self.weight[0] if self.transposed else self.weight[1] * self.groups
        positive = min((*self.stride, *self.dilation, self.groups)) > 0
        return positive and channels == self.image[1] and min(self.padding) >= 0

    @property
    def output(self) -> Shape:
        """Shape of what comes out; NoFormulaError where the input is smaller than the kernel."""
        spatial, kernel = self.image[2:], self.weight[2:]
        each = zip(
            spatial, kernel, self.stride, self.padding, self.dilation, self.more, strict=True
        )
        if self.transposed:
            sizes = tuple(
                (size - 1) * step - 2 * pad + apart * (wide - 1) + 1 + more
                for size, wide, step, pad, apart, more in each
            )
            channels = self.weight[1] * self.groups
        else:
            sizes = tuple(
                (size + 2 * pad - apart * (wide - 1) - 1) // step + 1
                for size, wide, step, pad, apart, _ in each
            )
            channels = self.weight[0]
        if min(sizes) < 0:
            raise NoFormulaError
        return (self.image[0], channels, *sizes)

    @property
    def flops(self) -> int:
        """2·N·Πs·Πkernel·O·C/groups, with s of the output, of one that is transposed the input."""
        spatial = self.image[2:] if self.transposed else self.output[2:]
        return 2 * self.image[0] * prod(spatial) * prod(self.weight)


def forward(inputs: OperatorInputs) -> Cost:
    """Count ``convolution(input, weight, bias, stride, padding, dilation, transposed, …)``."""
    found = _Convolution.read(inputs, 0, 3)
    moved = least_bytes(inputs, (0, 1), prod(found.output))
    return Cost(found.flops, moved, inputs.precision(0, 1))


def backward(inputs: OperatorInputs) -> Cost:
    """Count that once for the gradient of the input and once for that of the weight, if asked for.

    ``convolution_backward(grad_output, input, weight, bias_sizes, stride, …, output_mask)``.
    """
    wanted = sum(inputs.flags(10)[:2])
    found = _Convolution.read(inputs, 1, 4)
    if inputs.shape(0, len(found.image)) != found.output:
        raise NoFormulaError
    return Cost(wanted * found.flops, None, inputs.precision(1, 2))
