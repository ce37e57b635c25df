"""DP-SGD on the handwritten digits of scikit-learn: a budget in μ, privacy shown live, a stop when
the budget is spent, a final report.

    python examples/dpsgd_digits.py                       # trains until μ = 1, writes dpsgd_digits/
    python examples/dpsgd_digits.py --max-mu 2 --noise-multiplier 3
    python examples/dpsgd_digits.py --measure             # what the accounting costs in each step

The whole run is one compiled program: Poisson batches, per-example gradients, clipping, noise, the
stop, and the certified privacy of each step, in float32. It needs ``pip install
'jaxgdp[examples]'``."""

from __future__ import annotations

import sys

if __name__ == "__main__" and sys.stderr.isatty():
    print(
        "importing jax and jaxgdp", file=sys.stderr, flush=True
    )  # which alone takes seconds on a busy machine

import argparse
import functools
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

import jaxgdp
import jaxgdp.plot
from jaxgdp.progress import show_progress
from jaxgdp.training import accountant, checkpoint, clipped_gradients, plan_budget, poisson_sampler

EVERY = 10  # steps between two lines of the history
DELTA = 1e-5


def digits():
    """1,437 training and 360 test images, 8 × 8, with labels; the split and the scale do not depend
    on the data.
    """
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    images, labels = jnp.asarray(images[order] / 16.0, jnp.float32), jnp.asarray(labels[order])
    return (images[360:], labels[360:]), (images[:360], labels[:360])


def initial(key, hidden=64):
    """Parameters of a network with one hidden layer."""
    first, second = jax.random.split(key)
    return {
        "w1": jax.random.normal(first, (64, hidden)) / 8.0,
        "b1": jnp.zeros(hidden),
        "w2": jax.random.normal(second, (hidden, 10)) / np.sqrt(hidden),
        "b2": jnp.zeros(10),
    }


def logits(params, image):
    """Scores of the ten digits."""
    return jnp.tanh(image @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]


def loss(params, image, label):
    """Cross-entropy of one image."""
    return optax.softmax_cross_entropy_with_integer_labels(logits(params, image), label)


def training(args, sampler, plan, budget, train, test, show=None, accounting=True):
    """The compiled run: key → (parameters, optimiser state, account, history).

    ``show`` is called on the host with (step, μ, ε, advantage, accuracy) every ``EVERY`` steps.
    """
    gradients = clipped_gradients(loss, args.clip_norm)
    rows = -(-args.max_steps // EVERY)

    def run(key):
        start, noise, sampling = jax.random.split(key, 3)
        optimiser = plan.privatize(
            clip_norm=args.clip_norm,
            key=noise,
            max_steps=budget,
            inner=optax.sgd(args.learning_rate, momentum=0.9),
        )

        def step(carry, _):
            params, state, account = carry
            batch = sampler.sample(sampling, state.step)
            _, clipped = gradients(params, *sampler.take(batch, *train), mask=batch.mask)
            update, after = optimiser.update(clipped, state, params)
            if accounting:
                account = accountant.step(account, 0, count=after.step - state.step)
            return (optax.apply_updates(params, update), after, account), live(after.step)

        def live(step):
            spent = plan.at(step) if accounting else {}
            return {
                name: spent[name].upper if accounting else jnp.zeros(()) for name in plan.quantities
            }

        def some(carry):
            row, inside, history = carry
            inside, spent = jax.lax.scan(step, inside, None, length=EVERY)
            accuracy = jnp.mean(jnp.argmax(logits(inside[0], test[0]), axis=-1) == test[1])
            line = {"step": inside[1].step, "accuracy": accuracy} | {
                name: v[-1] for name, v in spent.items()
            }
            if show is not None:
                jax.debug.callback(
                    show, *(line[k] for k in ("step", "mu", "epsilon", "advantage", "accuracy"))
                )
            return (
                row + 1,
                inside,
                {name: kept.at[row].set(line[name]) for name, kept in history.items()},
            )

        params = initial(start)
        account = accountant.init([(args.noise_multiplier, args.sampling_prob)])
        account = jax.tree.map(jnp.asarray, account)
        history = {name: jnp.full(rows, jnp.nan) for name in (*plan.quantities, "accuracy")}
        history["step"] = jnp.zeros(rows, jnp.int32)
        inside = params, optimiser.init(params), account
        # stops computing, not only updating, once the budget is spent
        row, inside, history = jax.lax.while_loop(
            lambda c: ~c[1][1].spent & (c[0] < rows),
            some,
            (jnp.zeros((), jnp.int32), inside, history),
        )
        return (*inside, history, row)

    return jax.jit(run)


def progress_bar(budget):
    """A rich progress bar on stderr, and the function that moves it."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("[progress.description]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(
            "μ {task.fields[mu]:.3f}  ε {task.fields[epsilon]:.2f}  advantage"
            " {task.fields[advantage]:.3f}"
        ),
        TextColumn("accuracy {task.fields[accuracy]:.2f}"),
    )
    bar = Progress(*columns, console=Console(stderr=True))
    task = bar.add_task(
        "compiling, once", total=budget, mu=0.0, epsilon=0.0, advantage=0.0, accuracy=0.0
    )

    def show(step, mu, epsilon, advantage, accuracy):
        fields = {"mu": mu, "epsilon": epsilon, "advantage": advantage, "accuracy": accuracy}
        bar.update(
            task,
            description="DP-SGD",
            completed=int(step),
            **{name: float(value) for name, value in fields.items()},
        )

    return bar, show


def plot(plan, history, max_mu, path):
    """What the run spent and what it learned, against its steps."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 3.8), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    last = int(history["step"][-1])
    jaxgdp.plot.budget(plan, left, "mu", limit=max_mu)
    jaxgdp.plot.budget(plan, middle, "epsilon")
    for ax in (left, middle):
        ax.axvline(last, color="0.4", linestyle=":", linewidth=1.2)
        ax.set_title(f"dotted: the run ended after {last} steps", fontsize=9)
    right.plot(history["step"], history["accuracy"], color="#D55E00", linewidth=1.2)
    right.set(xlabel="steps", ylabel="test accuracy (share)", xlim=(0, last), ylim=(0.0, 1.0))
    right.grid(True, linewidth=0.4, alpha=0.5)
    question = f"what DP-SGD on the digits spent of μ = {max_mu:g}, and what it learned"
    jaxgdp.plot.save(figure, path, question=question, fpr_floor=dict(plan.asked)["fpr_floor"])


def cost_of_accounting(args, sampler, plan, budget, train, test, repeats=9):
    """Seconds per step: of the run with and without the accounting, taken in turns, and of the
    lookups alone.
    """

    @jax.jit
    def lookups(plan):
        def step(carry, t):
            spent = plan.at(t)
            return {name: carry[name] + spent[name].upper for name in carry}, None

        start = {name: jnp.zeros(()) for name in plan.quantities}
        return jax.lax.scan(step, start, jnp.arange(100_000) % args.max_steps)[0]

    key = jax.random.key(args.seed)
    programs = [
        functools.partial(training(args, sampler, plan, budget, train, test, accounting=on), key)
        for on in (True, False)
    ]
    programs.append(functools.partial(lookups, plan))
    times = np.zeros((repeats + 1, len(programs)))
    for i in range(repeats + 1):
        for j, program in enumerate(programs):
            begin = time.perf_counter()
            jax.block_until_ready(program())
            times[i, j] = time.perf_counter() - begin
    return np.median(times[1:], axis=0) / (budget, budget, 100_000)  # the first round compiles


def main(argv=None):
    parser = argparse.ArgumentParser(description="DP-SGD on handwritten digits, with a budget in μ")
    parser.add_argument(
        "--max-mu",
        type=float,
        default=1.0,
        help="the budget: largest certified μ at FPRs down to 1e-10",
    )
    parser.add_argument("--noise-multiplier", type=float, default=2.0)
    parser.add_argument("--sampling-prob", type=float, default=0.1)
    parser.add_argument(
        "--max-steps", type=int, default=1000, help="stop here even if budget is left"
    )
    parser.add_argument("--clip-norm", type=float, default=1.0)
    parser.add_argument("--learning-rate", type=float, default=0.3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("dpsgd_digits"),
        help="folder for the report, the account and the figure",
    )
    parser.add_argument(
        "--force", action="store_true", help="replace what an earlier run left in that folder"
    )
    parser.add_argument(
        "--no-report", action="store_true", help="leave out the report of the whole trade-off curve"
    )
    parser.add_argument(
        "--measure", action="store_true", help="measure what the accounting costs in each step"
    )
    args = parser.parse_args(argv)
    there = [
        name for name in ("account.json", "run.png", "report.md") if (args.output / name).exists()
    ]
    if there and not (args.force or args.measure):
        parser.error(
            f"{args.output / there[0]} exists already: give --force to replace it, or another"
            " --output"
        )

    with show_progress("loading the digits"):
        train, test = digits()
    sampler = poisson_sampler(len(train[0]), args.sampling_prob, args.max_steps)
    begin = time.perf_counter()
    plan = plan_budget(args.noise_multiplier, sampler=sampler, delta=DELTA)
    budget = plan.max_steps_within(mu=args.max_mu)
    print(
        f"{len(train[0])} images, batches of {sampler.expected_batch_size:.1f} on average, padded"
        f" to {sampler.padded_size}"
    )
    print(
        f"plan made in {time.perf_counter() - begin:.1f} s: μ stays within {args.max_mu:g} for"
        f" {budget} steps"
    )
    if budget == 0:
        raise SystemExit(
            "not even one step is within the budget: raise --max-mu or --noise-multiplier"
        )
    if args.measure:
        with show_progress("compiling, once, and measuring"):
            with_it, without, lookup = cost_of_accounting(args, sampler, plan, budget, train, test)
        print(
            f"a step takes {with_it * 1e6:.1f} µs, without accounting {without * 1e6:.1f} µs:"
            f" {with_it / without - 1:+.2%}"
        )
        print(f"the lookups alone take {lookup * 1e6:.4f} µs: {lookup / with_it:.5%}")
        return with_it, without, lookup

    bar, show = progress_bar(budget)
    with bar:
        compiled = training(args, sampler, plan, budget, train, test, show)
        params, state, account, history, rows = jax.block_until_ready(
            compiled(jax.random.key(args.seed))
        )
        jax.effects_barrier()
    history = {name: np.asarray(value)[: int(rows)] for name, value in history.items()}

    args.output.mkdir(parents=True, exist_ok=True)
    with show_progress("certifying the run"):
        spent = account.spent(delta=DELTA, overflow=sampler.overflow)
    # the optimiser also stops at --max-steps: the budget is spent only where the step after the
    # last would not be within it
    exhausted = bool(state.spent) and budget < args.max_steps
    why = (
        "" if exhausted else f" (stopped at --max-steps {args.max_steps}, μ within {args.max_mu:g})"
    )
    print(
        f"\n{account.num_steps} steps; budget spent: {exhausted}{why}; test accuracy"
        f" {history['accuracy'][-1]:.3f}"
    )
    for name, bracket in spent.items():
        print(f"  {name:10s} {float(bracket.lower):.5f} … {float(bracket.upper):.5f}")
    checkpoint.save(account, args.output / "account.json")
    plot(plan, history, args.max_mu, args.output / "run.png")
    if not args.no_report:
        with show_progress("reporting the whole trade-off curve"):
            report = jaxgdp.report(account.composition())
        (args.output / "report.md").write_text(report.to_markdown(), encoding="utf-8")
        print(report)
    return account, history


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
