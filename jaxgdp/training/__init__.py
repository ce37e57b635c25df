"""Privacy in JAX training loops: batches, an optax transformation, a plan and an account of a run.

    batches         padded batches, and the records in them
    poisson         Poisson batches of static shape, and what their static shape costs
    epochs          shuffled and allocated batches, an epoch at a time
    gradients       what a private step takes: per-example gradients, or their clipped sum
    exact_sums      sums of clipped gradients that no rounding touches
    clipping        the same sum in one float
    noise           Gaussian noise with tails as long as the accounting's
    transformation  ``privatize``: noise, average, count, stop, as an optax transformation
    plan            certified privacy of every step, looked up inside the loop
    budget          ``plan_budget``: which numbers of steps are computed
    goals           limits and targets that a number of steps keeps within
    runs            what a number of steps costs, by sampler
    stopping        the last step within a budget, found in few evaluations
    accountant      counts of steps for settings on a schedule; checkpoint: the same on disk
    describe        which sampler a data loader has, and what may be claimed of it
    pipelines       the same of pipelines of grain and tf.data
    filters         budgets for settings that depend on the data
    residue         the same, charged by trade-off curves instead of one number a step
    odometers       what such a run has spent, whenever one asks
    overflow, float32  the safe side of padded batches and of float32
    correlated      plans of matrix mechanisms, whose noise another library adds
    adaptive_clipping  the noise that a clipped sum and a count of small norms leave together
    arguments, refusals  what a step is given, checked; slips that would void the privacy of a run

Everything that runs inside a training step works under ``jit``, ``scan``, ``vmap``, ``pmap`` and
``shard_map`` in float32, with 64-bit off."""

from . import accountant, checkpoint, filters, odometers, residue
from .accountant import Account
from .adaptive_clipping import adaptive_clipping_noise, adaptive_clipping_sum_noise
from .batches import Batch
from .budget import plan_budget
from .clipping import clipped_sum
from .describe import LoaderDescription, describe
from .epochs import AllocationSampler, ShuffleSampler, allocation_sampler, shuffle_sampler
from .filters import Filter
from .gradients import ClippedGradients, ExampleGradients, clipped_gradients, per_example_gradients
from .noise import standard_normal
from .odometers import Odometer
from .plan import Plan
from .poisson import PoissonSampler, overflow_probability, poisson_sampler
from .transformation import PrivatizeState, noisy_mean, privatize

__all__ = [
    "Account",
    "AllocationSampler",
    "Batch",
    "ClippedGradients",
    "ExampleGradients",
    "Filter",
    "LoaderDescription",
    "Odometer",
    "Plan",
    "PoissonSampler",
    "PrivatizeState",
    "ShuffleSampler",
    "accountant",
    "adaptive_clipping_noise",
    "adaptive_clipping_sum_noise",
    "allocation_sampler",
    "checkpoint",
    "clipped_gradients",
    "clipped_sum",
    "describe",
    "filters",
    "noisy_mean",
    "odometers",
    "overflow_probability",
    "per_example_gradients",
    "plan_budget",
    "poisson_sampler",
    "privatize",
    "residue",
    "shuffle_sampler",
    "standard_normal",
]
