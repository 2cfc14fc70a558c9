"""JAX: a jitted gradient, a scan, a sort, a convolution, an FFT."""

import os

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
# Command buffers are CUDA graphs; here every kernel is a launch of its own. Without autotuning the
# same kernels run every time.
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "")
    + " --xla_gpu_enable_command_buffer= --xla_gpu_autotune_level=0"
)

import jax
import jax.numpy as jnp


def loss(weights, batch, target):
    hidden = jnp.tanh(batch @ weights["first"] + weights["bias"])
    logits = hidden @ weights["second"]
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * target, axis=-1))


@jax.jit
def step(weights, batch, target):
    value, gradient = jax.value_and_grad(loss)(weights, batch, target)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradient), value


@jax.jit
def recurrence(values):
    return jax.lax.scan(lambda carry, x: (carry * 0.9 + x, carry.sum()), jnp.zeros(16), values)


@jax.jit
def convolution(image, kernel):
    return jax.nn.relu(jax.lax.conv_general_dilated(image, kernel, (1, 1), "SAME")).sum()


keys = jax.random.split(jax.random.PRNGKey(1), 5)
weights = {
    "first": jax.random.normal(keys[0], (64, 96)) * 0.1,
    "bias": jnp.zeros(96),
    "second": jax.random.normal(keys[1], (96, 10)) * 0.1,
}
batch = jax.random.normal(keys[2], (33, 64))
target = jax.nn.one_hot(jnp.arange(33) % 10, 10)
values = []
for _ in range(3):
    weights, value = step(weights, batch, target)
    values.append(float(value))
last, sums = recurrence(jax.random.normal(keys[3], (12, 16)))
values += [float(last.sum()), float(sums[-1])]
values.append(float(jnp.sort(jax.random.normal(keys[4], (1000,)))[500]))
values.append(float(convolution(jnp.ones((2, 3, 16, 16)), jnp.ones((4, 3, 3, 3)))))
values.append(float(jnp.abs(jnp.fft.fft(batch[0]))[1]))
values.append(float(jnp.cumsum(batch, axis=0)[-1, 0]))
values.append(float(jnp.linalg.cholesky(batch.T @ batch + 40 * jnp.eye(64))[3, 2]))
values.append(float(jnp.zeros(50).at[jnp.arange(200) % 50].add(1.0)[7]))
print(f"jax: {' '.join(f'{value:.3f}' for value in values)} on {jax.devices()[0].platform}")
