"""Arrays at addresses that XLA takes without a copy."""

import jax
import numpy as np
import pytest

from jaxgdp.accounting.certify import frequency_tables
from jaxgdp.numerics import aligned


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 5), (2, 3, 64), (0, 4)])
def test_zeros_are_where_xla_takes_them(shape):
    found = aligned.zeros(shape)
    assert found.shape == shape and found.flags.c_contiguous and not np.any(found)
    assert found.size == 0 or found.ctypes.data % 64 == 0


def test_copies_have_the_same_numbers():
    a = np.arange(24.0).reshape(4, 6).T
    found = aligned.aligned(a)
    assert np.array_equal(found, a) and found.ctypes.data % 64 == 0


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="CPUs share the host's memory")
def test_large_tables_are_not_copied():
    t = frequency_tables.tables(2**14, 256, 1024, 64, 3, 13)
    large = [*t.sine, *t.versine, t.even, t.odd, t.node_cos, t.node_sin]
    with jax.enable_x64(True):
        for a in large:
            assert jax.device_put(a, may_alias=True).unsafe_buffer_pointer() == a.ctypes.data
