"""Names that people bring along are answered with the right ones; old names work, and warn."""

import decimal
import fractions
import inspect
import json
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import jaxgdp
from jaxgdp import conversions, gdp, options, targets, training, vocabulary

RUN = jaxgdp.Laplace(3.0)
PACKAGE = Path(jaxgdp.__file__).parent


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: jaxgdp.measure(RUN, sample_rate=0.1), "sampling_prob=…"),
        (lambda: jaxgdp.measure(RUN, "epsilon", deltas=0.1), "write delta=…"),
        (lambda: jaxgdp.measure(RUN, "tpr", alpha=0.1), "write fpr=…"),
        (lambda: jaxgdp.dpsgd(1.0, sample_rate=0.1, num_steps=3), "write sampling_prob=…"),
        (lambda: jaxgdp.dpsgd(sigma=1.0, sampling_prob=0.1, num_steps=3), "write noise_multiplier"),
        (lambda: jaxgdp.dpsgd(1.0, 0.1, steps=3), "write num_steps=…"),
        (lambda: jaxgdp.dpsgd(1.0, batch_size=32), "write jaxgdp.run"),
        (lambda: jaxgdp.dpsgd(1.0, 0.1, epochs=3), "write jaxgdp.run"),
        (lambda: jaxgdp.calibrate(targets.Mu(1.0), steps=3), "write num_steps=…"),
        (lambda: jaxgdp.tradeoff(RUN, tol=1e-3), "write rtol=…"),
    ],
)
def test_other_names_of_arguments_are_answered_with_ours(call, told):
    with pytest.raises(TypeError, match=told):
        call()


def test_other_names_stand_for_arguments_of_public_functions():
    functions = (
        jaxgdp.measure, jaxgdp.dpsgd, jaxgdp.calibrate, jaxgdp.compare_samplers, jaxgdp.report,
    )  # fmt: skip
    ours = {name for function in functions for name in inspect.signature(function).parameters}
    assert set(vocabulary.OTHERS.values()) <= ours


@pytest.mark.parametrize(
    ("argument", "quantity"),
    [("delta", "epsilon"), ("epsilon", "delta"), ("fpr", "tpr"), ("prior", "bayes_risk")],
)
def test_argument_of_no_default_quantity_is_refused(argument, quantity):
    with pytest.raises(ValueError, match=rf"jaxgdp\.{quantity}\(…, {argument}=…\)"):
        jaxgdp.measure(RUN, **{argument: 0.5})


def test_wrong_names_are_answered_with_close_ones():
    with pytest.raises(AttributeError, match="did you mean 'EpsilonDelta'"):
        targets.Epsilon  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean 'Advantage'"):
        targets.Advantag  # noqa: B018
    with pytest.raises(AttributeError, match="did you mean 'calibrate'"):
        jaxgdp.callibrate  # noqa: B018
    with pytest.raises(ValueError, match="did you mean 'epsilon'"):
        jaxgdp.measure(RUN, "epsilonn")
    with pytest.raises(ValueError, match="did you mean 'add_remove'"):
        jaxgdp.calibrate(targets.Mu(1.0), infeasible="raise", adjacency="addremove")


@pytest.mark.parametrize("module", [gdp, conversions])
def test_closed_forms_and_conversions_take_keywords_only(module):
    names = set(getattr(module, "__all__", ())) or {
        name for name, value in vars(module).items() if inspect.isfunction(value)
        and value.__module__ == module.__name__ and not name.startswith("_")
    }  # fmt: skip
    functions = [getattr(module, n) for n in names - {"compose"} if callable(getattr(module, n))]
    assert len(functions) >= 13
    for function in functions:
        parameters = list(inspect.signature(function).parameters)
        with pytest.raises(TypeError, match=rf"write {function.__name__}\({parameters[0]}=…"):
            function(*(0.5 for _ in parameters))


def test_swapped_rho_and_delta_are_refused():
    with pytest.raises(TypeError, match=r"write epsilon_from_zcdp\(delta=…, rho=…\)"):
        conversions.epsilon_from_zcdp(0.5, 1e-5)
    assert conversions.epsilon_from_zcdp(rho=0.5, delta=1e-5) == pytest.approx(4.7284, abs=1e-4)


def _optimized(**how) -> float:
    """The proxy of a short optimisation."""
    found = jaxgdp.optimize(
        lambda schedule: schedule.noise_multiplier @ jnp.ones(2),
        targets.Mu(1.0),
        noise_multiplier=[2.0, 4.0],
        iterations=2,
        **how,
    )
    return found.proxy


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (lambda: gdp.beta(alpha=0.1, mu=1.0), lambda: gdp.beta(fpr=0.1, mu=1.0)),
        (
            lambda: jaxgdp.measure(RUN, "approximate_mu", d=1e-6).brackets,
            lambda: jaxgdp.measure(RUN, "approximate_mu", approximation=1e-6).brackets,
        ),
        (
            lambda: jaxgdp.measure(RUN, "mu", 1e-2).brackets,
            lambda: jaxgdp.measure(RUN, "mu", rtol=1e-2).brackets,
        ),
        (
            lambda: jaxgdp.tradeoff(RUN, 1e-2).beta(alpha=0.1),
            lambda: jaxgdp.tradeoff(RUN, rtol=1e-2).beta(fpr=0.1),
        ),
        (
            lambda: targets.ApproximateMu(1.0, d=1e-6),
            lambda: targets.ApproximateMu(1.0, approximation=1e-6),
        ),
        (
            lambda: jaxgdp.calibrate(targets.Mu(0.5), 1.0, 4, tolerance=1e-2).value,
            lambda: jaxgdp.calibrate(targets.Mu(0.5), num_steps=4, rtol=1e-2).value,
        ),
        (
            lambda: training.poisson_sampler(num_examples=100, sampling_prob=0.5, max_steps=1),
            lambda: training.poisson_sampler(100, 0.5, 1),
        ),
        (
            lambda: training.shuffle_sampler(num_examples=100, batch_size=7),
            lambda: training.shuffle_sampler(dataset_size=100, batch_size=7),
        ),
        (
            lambda: training.allocation_sampler(100, 10, 1).num_examples,
            lambda: training.allocation_sampler(100, 10, 1).dataset_size,
        ),
        (lambda: _optimized(tolerance=1e-2), lambda: _optimized(rtol=1e-2)),
    ],
)
def test_old_names_work_and_warn(old, new):
    with pytest.warns(DeprecationWarning, match="is deprecated: write "):
        found = old()
    assert found == new()


@pytest.mark.parametrize(
    "value",
    [decimal.Decimal("0.25"), fractions.Fraction(1, 4), jnp.bfloat16(0.25), np.float16(0.25)],
)
def test_numbers_of_every_kind_are_numbers(value):
    assert gdp.delta(epsilon=value, mu=1.0) == gdp.delta(epsilon=0.25, mu=1.0)


@pytest.mark.parametrize("value", ["1e-5", b"1e-5", ["1e-5"], np.array(["1e-5"], object)])
def test_text_is_no_number(value):
    with pytest.raises(ValueError, match=r"delta must be a number .*, not text, got .*1e-5"):
        jaxgdp.epsilon(RUN, delta=value)


def test_defaults_stand_once():
    """What a signature takes where nothing is said is a name in ``options``, never a number of its
    own.
    """
    import ast

    defaults = {
        "rtol": options.RTOL, "fpr_floor": options.FPR_FLOOR, "adjacency": options.ADJACENCY,
        "delta": options.DELTA, "epsilon": options.EPSILON, "fpr": options.FPR,
        "approximation": options.APPROXIMATION, "prior": options.PRIOR,
    }  # fmt: skip
    again = []
    for path in PACKAGE.rglob("*.py"):
        if path.relative_to(PACKAGE).parts[0] == "cli":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                continue
            own = node.args.args
            pairs = [*zip(own[::-1], node.args.defaults[::-1], strict=False)]
            pairs += zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            again += [
                f"{path.relative_to(PACKAGE)}: {node.name}({argument.arg}={value.value!r})"
                for argument, value in pairs
                if isinstance(value, ast.Constant)
                and defaults.get(argument.arg, ...) == value.value
            ]
    assert not again


FRESH = """
import importlib, json, sys, types, warnings
import jaxgdp
assert not {"jax", "numpy"} & set(sys.modules)
found = {}
for name in json.loads(sys.argv[1]):
    value = getattr(jaxgdp, name)
    found[name] = isinstance(value, types.ModuleType) or callable(value)
warnings.simplefilter("error")
moved = []
for name in ("landscape", "comparison", "sweep"):
    try:
        importlib.import_module("jaxgdp." + name)
    except DeprecationWarning as warning:
        moved.append(str(warning))
warnings.simplefilter("ignore")
from jaxgdp.landscape import landscape
from jaxgdp.sweep import sweep
assert sweep is jaxgdp.sweep and landscape is jaxgdp.landscape.landscape
assert sys.modules["jaxgdp.landscape"] is sys.modules["jaxgdp.grids.landscape"]
assert jaxgdp.landscape.__spec__.name == "jaxgdp.grids.landscape"
print(json.dumps([found, moved]))
"""


def test_every_module_is_reached_in_a_fresh_process():
    names = {path.stem for path in PACKAGE.glob("*.py")} | {
        path.parent.name for path in PACKAGE.glob("*/__init__.py")
    }
    names = sorted({n for n in names if not n.startswith("_")} | {"landscape", "comparison"})
    names += ["epsilon", "mu", "delta", "measure"]
    found, moved = json.loads(
        subprocess.run(
            [sys.executable, "-c", FRESH, json.dumps(names)],
            capture_output=True, text=True, check=True, cwd=PACKAGE.parent,
        ).stdout
    )  # fmt: skip
    assert all(found[name] for name in names)
    assert moved[0] == "the module jaxgdp.landscape is deprecated: write jaxgdp.grids.landscape"
    assert len(moved) == 3
