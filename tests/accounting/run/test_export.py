"""Compiled programs for accelerators that are not here: they are lowered for them, and hold nothing
that only a CPU has.
"""

from __future__ import annotations

import re

import jax
import numpy as np
import pytest

import jaxgdp
from jaxgdp.accounting.question import Question
from jaxgdp.accounting.run import compiled, executors, float32, routes
from jaxgdp.numerics.precision import with_float64
from jaxgdp.quantities import registry

PLATFORMS = ("cuda", "rocm", "tpu")


class Recording(executors.Eager):
    """NumPy, and what each stage was called with."""

    name = "recording"

    def __init__(self):
        self.calls = {}

    def plan_whole(self, groups, depths, rtol, max_neg_log_density, known_reach, anchor, pieces):
        self.calls["plan"] = (
            (groups, depths, max_neg_log_density, known_reach, anchor, rtol),
            {"pieces": pieces},
        )
        return super().plan_whole(
            groups, depths, rtol, max_neg_log_density, known_reach, anchor, pieces
        )

    def half(self, groups, plans, reverse, tables, shape):
        self.calls["half"] = (groups, plans, np.asarray(reverse), tables), {"shape": shape}
        return super().half(groups, plans, reverse, tables, shape)

    def read(self, parts, plus, minus, rates, kind, pieces):
        self.calls["read"] = (parts, plus, minus, rates), {"kind": kind, "pieces": pieces}
        return super().read(parts, plus, minus, rates, kind, pieces)


@pytest.fixture(scope="module")
def calls():
    recording = Recording()
    groups = jaxgdp.dpsgd(2.0, 0.1, np.array([500.0])).stacked()
    asked = tuple(
        (registry.named(name), None if name == "mu" else 1e-5) for name in ("mu", "epsilon")
    )
    question = Question(rtol=1e-2, fpr_floor=1e-10, asked=asked, deepest=np.array([1e-5]))
    routes.answer(groups, question, executor=recording)
    return recording.calls


def exported(program, call, platforms, **more):
    """StableHLO of a program for other platforms."""
    args, static = call
    found = with_float64(
        lambda: jax.export.export(program.plain, platforms=platforms)(*args, **static, **more)
    )()
    assert found.platforms == platforms
    return found.mlir_module()


def custom_calls(text):
    return set(re.findall(r'custom_call\s*@(\w+)|call_target_name = "([^"]+)"', text))


STAGES = {"plan": compiled._plan_whole, "half": compiled._half, "read": compiled._read}


@pytest.mark.parametrize("stage", STAGES)
def test_programs_export_without_callbacks_and_custom_calls(calls, stage):
    text = exported(STAGES[stage], calls[stage], PLATFORMS)
    assert "stablehlo" in text and "f64" in text
    assert custom_calls(text) == set()  # what calls back to Python is a custom call, too


def test_check_sees_a_custom_call():
    def eigenvalues(a):
        return jax.numpy.linalg.eigvalsh(a)

    found = jax.export.export(jax.jit(eigenvalues), platforms=("cpu",))(
        np.eye(3, dtype=np.float32)
    ).mlir_module()
    assert custom_calls(found) != set()


def test_product_program_has_no_fft_and_no_complex_number(calls):
    args, static = calls["half"]
    assert args[3] is not None, "the lattice has to be a sparse one"
    text = exported(compiled._half, calls["half"], ("tpu",), product=True)
    assert "stablehlo.fft" not in text and "complex<" not in text and custom_calls(text) == set()
    assert "stablehlo.dot_general" in text


def test_check_sees_an_fft(calls):
    assert "stablehlo.fft" in exported(compiled._half, calls["half"], ("tpu",))


def test_float32_program_has_no_number_of_64_bits(monkeypatch):
    """What it is given by real passes, and its program: neither doubles nor complex numbers, and
    nothing but sums of products.
    """
    seen, run = [], float32._whole_sums
    monkeypatch.setattr(
        float32, "_whole_sums", lambda *arguments: seen.append(arguments) or run(*arguments)
    )
    monkeypatch.setitem(executors.BY_NAME, "float32", executors.Float32(executors.EAGER))
    jaxgdp.measure(jaxgdp.dpsgd(2.0, 0.1, 500), "mu", rtol=3e-2, nested=False, executor="float32")
    assert len(seen) >= 4
    for arguments in seen:
        assert {np.asarray(argument).dtype for argument in arguments} == {np.dtype(np.float32)}
    for platform in PLATFORMS:
        text = exported(run, (seen[0], {}), (platform,))
        assert (
            "f32" in text
            and "f64" not in text
            and "complex<" not in text
            and custom_calls(text) == set()
        )
        operations = set(re.findall(r"stablehlo\.(\w+)", text))
        assert operations - {
            "slice",
            "reshape",
            "transpose",
            "concatenate",
            "broadcast_in_dim",
        } == {"dot_general"}
