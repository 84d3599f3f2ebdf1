"""Products with JAX, compiled: jax_loop.py STEPS."""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp

SIDE = 512


def main(count: int) -> None:
    """The command line."""
    product = jax.jit(lambda x: jnp.tanh(x @ x))
    x = jnp.ones((SIDE, SIDE), jnp.float32)
    for _ in range(count):
        x = product(x)
    x.block_until_ready()


if __name__ == "__main__":
    main(int(sys.argv[1]))
