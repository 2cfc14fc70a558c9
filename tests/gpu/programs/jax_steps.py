"""A few jitted steps in JAX."""

import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp


@jax.jit
def step(weights, batch):
    def loss(w):
        return jnp.mean((batch @ w - 1.0) ** 2)

    value, gradient = jax.value_and_grad(loss)(weights)
    return weights - 0.01 * gradient, value


weights = jnp.zeros((32, 1))
losses = []
for number in range(6):
    weights, value = step(weights, jnp.full((16, 32), float(number % 3)))
    losses.append(float(value))
print(f"jax: {' '.join(f'{loss:.3f}' for loss in losses)} on {jax.devices()[0].platform}")
