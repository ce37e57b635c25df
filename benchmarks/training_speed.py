"""Time and memory of one clipped sum: jaxgdp, jax_privacy and plain vmap, the same model, one run.

    python benchmarks/training_speed.py             # jax_privacy too, where it is installed
    python benchmarks/training_speed.py --rounds 30

A convolutional network on 28×28 images, a batch of 256 in micro-batches of 32. Programs run in
turns, and the median of CPU seconds of a call is told; memory is what XLA sets aside for a program
beside its arguments and results. Writes a table (.md) and all numbers (.json) to
benchmarks/results/training."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.metadata
import json
import statistics
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import landscape_speed
import numpy as np
import optax

import jaxgdp
from jaxgdp.training import clipped_gradients

BATCH, MICRO, CLIP = 256, 32, 1.0


def initial(key):
    """Parameters of two convolutions and two dense layers, 109,000 numbers."""
    shapes = {
        "first": (3, 3, 1, 16),
        "second": (3, 3, 16, 32),
        "third": (1568, 64),
        "last": (64, 10),
    }
    keys = jax.random.split(key, len(shapes))
    return {
        name: jax.random.normal(k, shape) / np.sqrt(np.prod(shape[:-1]))
        for k, (name, shape) in zip(keys, shapes.items(), strict=True)
    }


def loss(params, image, label):
    """Cross-entropy of one image."""
    convolved = lambda x, kernel: jax.lax.conv_general_dilated(
        x, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    x = jax.nn.relu(convolved(image[None], params["first"]))
    x = jax.nn.relu(convolved(x, params["second"])).reshape(-1)
    logits = jax.nn.relu(x @ params["third"]) @ params["last"]
    return optax.softmax_cross_entropy_with_integer_labels(logits, label)


def plain(params, images, labels, mask):
    """All gradients at once, clipped by optax."""
    gradients = jax.vmap(jax.grad(loss), (None, 0, 0))(params, images, labels)
    leaves, structure = jax.tree.flatten(gradients)
    shown = [leaf * mask.reshape((-1,) + (1,) * (leaf.ndim - 1)) for leaf in leaves]
    return jax.tree.unflatten(structure, optax.per_example_global_norm_clip(shown, CLIP)[0])


def programs():
    """Name → function of (parameters, images, labels, mask)."""
    ours = lambda size: (
        lambda params, images, labels, mask: (
            clipped_gradients(loss, CLIP, size)(params, images, labels, mask=mask)[1].total
        )
    )
    found = {"jaxgdp": ours(MICRO), "jaxgdp, whole batch": ours(None), "vmap and optax": plain}
    try:
        from jax_privacy import clipped_grad
    except ImportError:
        return found

    def theirs(size):
        function = clipped_grad(
            loss,
            l2_clip_norm=CLIP,
            batch_argnums=(1, 2),
            keep_batch_dim=False,
            microbatch_size=size,
        )
        return lambda params, images, labels, mask: function(
            params, images, labels, is_padding_example=~mask
        )

    return found | {"jax_privacy": theirs(MICRO), "jax_privacy, whole batch": theirs(None)}


def measured(rounds):
    """Name → CPU seconds of a call and bytes beside arguments and results."""
    rng = np.random.default_rng(0)
    images = jnp.asarray(rng.normal(size=(BATCH, 28, 28, 1)), jnp.float32)
    given = initial(jax.random.key(0)), images, jnp.asarray(rng.integers(10, size=BATCH))
    mask = jnp.arange(BATCH) < BATCH - 40
    compiled = {n: jax.jit(f).lower(*given, mask).compile() for n, f in programs().items()}
    seconds = {name: [] for name in compiled}
    for _ in range(rounds + 2):
        for name, program in compiled.items():
            start = time.process_time()
            jax.block_until_ready(program(*given, mask))
            seconds[name].append(time.process_time() - start)
    return {
        name: {
            "seconds": statistics.median(seconds[name][2:]),
            "bytes": program.memory_analysis().temp_size_in_bytes,
        }
        for name, program in compiled.items()
    }


def versions():
    """Versions of what was measured."""
    found = {}
    for package in ("jaxgdp", "jax", "optax", "jax-privacy"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found | {"jaxgdp": jaxgdp.__version__}


def table(run):
    """The measurements as Markdown."""
    machine = run["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    lines = [
        f"{machine['cpu']}, {machine['cores']} cores; {packages}; {run['date']}; a convolutional"
        f" network of 109,000 numbers, a batch of {BATCH}, micro-batches of {MICRO}; medians of CPU"
        " time, memory beside arguments and results.",
        "",
        "| clipped sum | CPU ms a call | memory, MB |",
        "|---|---|---|",
    ]
    for name, row in run["programs"].items():
        lines.append(f"| {name} | {1e3 * row['seconds']:.1f} | {row['bytes'] / 1e6:.1f} |")
    return "\n".join(lines) + "\n"


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parent / "results" / "training"
    )
    args = parser.parse_args(argv)
    device = jax.devices()[0]
    run = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": landscape_speed.machine(
            {"kind": device.device_kind, "platform": device.platform}
        ),
        "versions": versions(),
        "programs": measured(args.rounds),
    }
    print(table(run))
    args.output.mkdir(parents=True, exist_ok=True)
    (args.output / "training_speed.md").write_text(table(run), encoding="utf-8")
    stored = json.dumps(run, indent=1) + "\n"
    (args.output / "training_speed.json").write_text(stored, encoding="utf-8")


if __name__ == "__main__":
    main()
