"""What a quantity is stands in its own file: nowhere else is there a list of names of quantities,
and no comparison with one, but for those below, each with its reason.
"""

import ast
from pathlib import Path

import jaxgdp
from jaxgdp.quantities.registry import REGISTRY

PACKAGE = Path(jaxgdp.__file__).parent

# (file or folder, names it may list together or compare with) → why
ARGUMENTS = "names of arguments, which some quantities share: δ and ε are asked at, and asked for"
DEFAULT = "what is computed where the user names nothing"
FOREIGN = "names of fields or columns of a format"
EXPORTED = "names that the module exports"
PAPER = "the numbers that the paper prints"
LANDSCAPE = "the landscape is that of μ and of the regret of reporting it"
ALLOWED = {
    ("__init__.py", frozenset(REGISTRY)): EXPORTED,
    ("arguments.py", frozenset({"delta", "epsilon"})): ARGUMENTS,
    ("calibration/result.py", frozenset({"delta", "tpr"})): FOREIGN,
    ("cli/bridge.py", frozenset({"delta", "epsilon"})): FOREIGN,
    ("differentiable/__init__.py", frozenset(REGISTRY)): EXPORTED,
    ("differentiable/gaussian.py", None): "derivatives in closed form, where they are known",
    ("cli/prove.py", frozenset({"delta", "epsilon"})): ARGUMENTS,
    ("explore/grid.py", None): "columns of the explorer's table",
    ("explore/live.py", frozenset({"advantage", "epsilon", "mu"})): FOREIGN,
    ("grids/compare_samplers.py", frozenset({"advantage", "epsilon", "mu"})): DEFAULT,
    ("grids/landscape.py", frozenset({"mu", "regret"})): LANDSCAPE,
    ("grids/sweep.py", frozenset({"mu", "regret"})): DEFAULT,
    ("interop/registry", None): "claims of the registry of deployments, fields of its format",
    ("interop/safe_sides.py", frozenset({"mu", "regret"})): "one call that asks for both",
    ("interop/spent.py", frozenset({"beta", "tpr"})): "one call that asks for both",
    ("measure/ask.py", frozenset({"mu", "regret"})): DEFAULT,
    ("measure/ask.py", frozenset({"delta", "epsilon"})): ARGUMENTS,
    ("mechanisms/approximate_dp.py", frozenset({"delta", "epsilon"})): "fields of the mechanism",
    ("plot/noise.py", frozenset({"advantage", "tpr"})): DEFAULT,
    ("plot/samplers.py", frozenset({"advantage", "epsilon", "mu"})): DEFAULT,
    ("report/statements.py", None): "fields of a model card's block",
    ("proof", None): "a proof shares nothing with what it proves, names included",
    ("report/proven.py", frozenset({"beta", "epsilon", "tpr"})): "what a report has at arguments",
    ("reproduce", None): PAPER,
    ("training/accountant.py", frozenset({"advantage", "epsilon", "mu"})): DEFAULT,
    ("training/budget.py", frozenset({"advantage", "epsilon", "mu"})): DEFAULT,
    ("training/budget.py", frozenset({"delta", "epsilon"})): ARGUMENTS,
}


def _names(nodes) -> frozenset[str]:
    values = (node.value for node in nodes if isinstance(node, ast.Constant))
    return frozenset(value for value in values if isinstance(value, str) and value in REGISTRY)


def names_in(source: str) -> list[tuple[int, frozenset[str]]]:
    """(line, names) of every collection with two or more names of quantities, and of every
    comparison or case with one.
    """
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            names, least = _names(node.elts), 2
        elif isinstance(node, ast.Dict):
            names, least = _names(node.keys), 2
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            more = [side.elts for side in sides if isinstance(side, ast.List | ast.Tuple | ast.Set)]
            names, least = _names(sum(more, sides)), 1
        elif isinstance(node, ast.MatchValue):
            names, least = _names([node.value]), 1
        else:
            continue
        if len(names) >= least:
            found.append((node.lineno, names))
    return found


def allowance(path: str, names: frozenset[str]) -> tuple | None:
    """The entry that allows a list of names in a file."""
    for place, allowed in ALLOWED:
        inside = path == place or path.startswith(f"{place}/")
        if inside and (allowed is None or names == allowed):
            return place, allowed
    return None


def test_no_list_of_names_of_quantities_outside_their_own_files():
    unknown, used = [], set()
    for file in sorted(PACKAGE.rglob("*.py")):
        path = file.relative_to(PACKAGE).as_posix()
        if path.startswith("quantities/"):
            continue
        for line, names in names_in(file.read_text(encoding="utf-8")):
            allowed = allowance(path, names)
            used.add(allowed)
            if allowed is None:
                unknown.append(f"{path}:{line}: {', '.join(sorted(names))}")
    assert not unknown, "read the quantity (jaxgdp.quantities.registry.named) in place of: " + (
        "; ".join(unknown)
    )
    stale = set(ALLOWED) - used
    assert not stale, f"nothing needs these any more: {stale}"


def test_planted_lists_are_found():
    planted = [
        'kinds = ["beta", "bayes_risk"]',
        'lower = {"beta", "bayes_risk", "another"}',
        'labels = {"mu": "μ", "tpr": "TPR"}',
        'if name == "regret": pass',
        'if name in ("beta",): pass',
        'if "epsilon" in names: pass',
        'match name:\n    case "mu": pass',
    ]
    for source in planted:
        ((_, names),) = {names: (0, names) for _, names in names_in(source)}.values()
        assert names and allowance("training/plan.py", names) is None
    for source in ('asked = ["mu"]', 'kinds = ("deltas", "run")', 'report["mu"] = report["tpr"]'):
        assert not names_in(source)
