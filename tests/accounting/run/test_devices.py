"""A batch over four devices of one process: the numbers of one device, and nothing between them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import jaxgdp

FOUR = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}


def run_on_four(code):
    environment = os.environ | FOUR | {"PYTHONPATH": str(Path(jaxgdp.__file__).parent.parent)}
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr


def test_rows_are_split_and_nothing_passes_between_devices():
    run_on_four(
        "import functools, jax, numpy as np\n"
        "from jaxgdp.accounting.run import devices\n"
        "assert devices.number() == 4\n"
        "one = lambda row, table: {'sum': table @ row[0], 'place': row[1] + 1.0}\n"
        "program = jax.jit(lambda rows, table: devices.mapped(one, rows, table))\n"
        "table = np.arange(15.0).reshape(3, 5)\n"
        "for length in (8, 5, 1):\n"
        "    rows = np.random.default_rng(0).random((length, 5)), np.arange(float(length))\n"
        "    placed = devices.placed(rows)\n"
        "    found = program(placed, table)\n"
        "    np.testing.assert_allclose(found['sum'], rows[0] @ table.T, rtol=1e-6)\n"
        "    np.testing.assert_array_equal(found['place'], rows[1] + 1.0)\n"
        "    if length == 8:\n"
        "        assert len(placed[0].sharding.device_set) == 4 and "
        "len(found['sum'].sharding.device_set) == 4\n"
        "        assert {s.data.shape for s in found['sum'].addressable_shards} == {(2, 3)}\n"
        "        text = program.lower(placed, table).compile().as_text()\n"
        "        for word in ('all-gather', 'all-reduce', 'all-to-all', 'collective-permute', "
        "'reduce-scatter'):\n"
        "            assert word not in text, word\n"
        "with jax.default_device(jax.devices()[1]):\n"
        "    assert devices.number() == 1 and devices.placed(rows) is rows\n"
    )


def test_real_program_has_no_transfer_between_devices():
    """Lowered, not compiled: every operation on rows stands inside the manual computation of one
    device's share.
    """
    run_on_four(
        "import jax, numpy as np, jaxgdp\n"
        "from jaxgdp.accounting.run import compiled, devices\n"
        "from jaxgdp.numerics.precision import with_float64\n"
        "groups = jaxgdp.dpsgd(np.full((8, 1), 2.0), 0.1, np.full((8, 1), 500.0)).stacked()\n"
        "rows = jax.tree.map(lambda a: a[:, 0], groups)\n"
        "reach = np.full((8, 2), np.inf), np.zeros((8, 2))\n"
        "text = with_float64(lambda: compiled._plan_whole.plain.lower(\n"
        "    rows, (np.full(8, 6.3), None), np.zeros(8), reach, np.zeros(8), 1e-2, "
        "pieces=1).as_text())()\n"
        "assert 'manual_computation' in text or 'SPMDFullToShardShape' in text\n"
        "for word in ('all_gather', 'all_reduce', 'all_to_all', 'collective_permute', "
        "'reduce_scatter'):\n"
        "    assert word not in text, word\n"
    )


@pytest.mark.slow
@pytest.mark.nightly
def test_compiled_brackets_of_four_devices_are_those_of_numpy():
    run_on_four(
        "import jax, numpy as np, jaxgdp\n"
        "assert len(jax.devices()) == 4\n"
        "batch = jaxgdp.dpsgd(np.linspace(1.0, 1.4, 6), 0.2, np.arange(500.0, 1100.0, 100.0))\n"
        "asked = {'quantities': 'mu', 'rtol': 1e-2, 'fpr_floor': 1e-6, 'nested': False}\n"
        "here, there = (jaxgdp.measure(batch, **asked, executor=e).brackets['mu'] for e in "
        "('compiled', 'eager'))\n"
        "for mine, other in zip(here, there):\n"
        "    np.testing.assert_array_less(abs(mine - other), 1e-9 * other + 0.05 * there.width)\n"
        "assert np.all(here.lower <= there.upper) and np.all(there.lower <= here.upper)\n"
    )
