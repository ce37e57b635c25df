"""Privacy in JAX training loops: Poisson batches, an optax transformation, a plan of the budget, and an account of a run.

Everything that runs inside a training step works under ``jit``, ``scan``, ``vmap`` and ``shard_map`` in float32, with 64-bit off.
"""

from .clipping import clipped_sum, per_example_gradients
from .plan import Plan, plan_budget
from .poisson import Batch, PoissonSampler, overflow_probability, poisson_sampler
from .transformation import PrivatizeState, noisy_mean, privatize

__all__ = [
    "Batch",
    "Plan",
    "PoissonSampler",
    "PrivatizeState",
    "clipped_sum",
    "noisy_mean",
    "overflow_probability",
    "per_example_gradients",
    "plan_budget",
    "poisson_sampler",
    "privatize",
]
