"""The contents of a report, every number a bracket with the side that is safe to report."""

from __future__ import annotations

import json
import platform
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import Field, dataclass, field, fields
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from .. import options
from .._version import __version__
from ..adjacency import Adjacency
from ..bracket import STATUS, Bracket, Status
from ..bridge.identify import identify
from ..deprecation import renamed_arguments
from ..mechanisms import Composition, Mechanism, as_composition
from ..mechanisms.description import describe
from ..numerics.provenance import today
from ..numerics.shapes import ArrayLike
from ..numerics.validation import floor_rate, open_unit, relative_width
from ..progress import show_progress
from ..quantities.registry import REGISTRY
from ..quantities.table import documented
from ..spec import SETTINGS, SEVERAL, Spec, from_dict, to_dict
from ..tradeoff import ContradictionWarning, TradeoffCurve, tradeoff
from . import stored, text
from .words import question

TIER_LIMIT = text.TIER_LIMIT
TPR_FPRS = options.REPORT_FPRS
# Gomez 2025, Section 4.3; α* is added to both
CURVE_FPRS = (1e-10, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1)
DEFAULTS = {
    "adjacency": options.ADJACENCY,
    "fpr_floor": options.FPR_FLOOR,
    "rtol": options.RTOL,
    "delta": options.REPORT_DELTAS,
    "fpr": options.REPORT_FPRS,
    "approximation": options.APPROXIMATION,
}


def _certified(quantity: str, *, several: bool = False, key: str | None = None) -> dict[str, Any]:
    """Metadata of a field with the bracket of a quantity, or several (argument, bracket), under a
    key of the report's dictionary, by default the quantity.
    """
    return {"quantity": quantity, "several": several, "key": key or quantity}


@dataclass(frozen=True)
class Report:
    """The numbers to publish about one mechanism; build it with :func:`report`.

    All brackets are scalars of float64; the upper side is the safe one to report, except for those
    of ``fnrs``.

    Attributes:
        title: what it is, or "".
        neighbours: which data sets are neighbours, in words, or "".
        mechanism: text of the composition.
        adjacency: "add_remove", "add", "remove" or "replace_one".
        tier: "I" where the upper side of the regret is below 0.01, else "II".
        mu: μ over FPRs from ``fpr_floor`` to f(``fpr_floor``) (Gomez 2025, Eq. 11).
        fpr_floor: smallest FPR at which ``mu`` holds.
        approximate_mu: d-approximate μ, which holds at every FPR.
        approximation: its d.
        regret: Δ of reporting the upper μ (Gomez 2025, Eq. 13).
        epsilons: tuple of (δ, ε bracket in nats).
        advantage: membership advantage η.
        advantage_fpr: α*, the FPR of the attack that reaches the lower side of the advantage.
        tprs: tuple of (FPR, TPR bracket), α* last.
        fnrs: Tier II: tuple of (FPR, FNR bracket), the trade-off curve at the paper's rates, α*
            last; report the lower side. Tier I: empty.
        tail_mu: a μ that holds at every FPR; for Gaussians, subsampled or not, the limit of μ as
            the floor goes to 0.
        others: tuple of (name of a registered quantity, argument or None, bracket), of those that
            have no field here.
        status: "ok", or what is not as it should be, and of which quantities: wider than ``rtol``,
            or contradictory and therefore withheld; the brackets hold all the same.
        rtol: requested relative width of the μ bracket.
        spec: description of the mechanism and of all settings, from which the report can be
            computed again (``jaxgdp.spec``).
        version: of jaxgdp.
        is_gdp: whether some μ holds at every rate (Liu et al. 2022, Theorem 3.3); None in reports
            stored by versions without this field.
        same_mu: whether that is ``mu`` itself.
        gdp_reason: why, in words.
        date: on which it was computed, as YYYY-MM-DD; "" in reports stored by versions without this
            field.
        software: names and versions of what computed it.

    Two reports are equal if all of it but ``date`` and ``software`` is equal."""

    title: str
    neighbours: str
    mechanism: str
    adjacency: str
    tier: str
    mu: Bracket = field(metadata=_certified("mu"))
    fpr_floor: float
    approximate_mu: Bracket = field(metadata=_certified("approximate_mu"))
    approximation: float
    regret: Bracket = field(metadata=_certified("regret"))
    epsilons: tuple[tuple[float, Bracket], ...] = field(
        metadata=_certified("epsilon", several=True)
    )
    advantage: Bracket = field(metadata=_certified("advantage"))
    advantage_fpr: float
    tprs: tuple[tuple[float, Bracket], ...] = field(metadata=_certified("tpr", several=True))
    fnrs: tuple[tuple[float, Bracket], ...] = field(
        metadata=_certified("beta", several=True, key="fnr")
    )
    tail_mu: float
    status: str
    rtol: float
    spec: dict
    version: str
    others: tuple[tuple[str, float | None, Bracket], ...] = ()
    is_gdp: bool | None = None
    same_mu: bool | None = None
    gdp_reason: str = ""
    date: str = field(default="", compare=False)
    software: dict = field(default_factory=dict, compare=False)
    _curve: Any = field(default=None, repr=False, compare=False)

    @classmethod
    def certified_fields(cls) -> list[Field]:
        """The fields that hold brackets of a quantity, which their metadata name."""
        return [each for each in fields(cls) if "quantity" in each.metadata]

    def __getitem__(self, name: str) -> Bracket | dict[float, Bracket]:
        """The bracket of a quantity, or argument → bracket where there are several.

        Raises:
            KeyError: the report does not hold that quantity; names those that it holds.

        Example:
            >>> import jaxgdp
            >>> found = jaxgdp.report(jaxgdp.Gaussian(2.0))
            >>> round(float(found["mu"].upper), 6), round(float(found["epsilon"][1e-5].upper), 3)
            (0.5, 1.993)
        """
        fields = self.certified_fields()
        held = {each.metadata["quantity"]: getattr(self, each.name) for each in fields}
        for other, at, bracket in self.others:
            held[other] = (*held.get(other, ()), (at, bracket))
        if not held.get(name):
            known = ", ".join(key for key, value in held.items() if value)
            raise KeyError(f"the report holds {known}; got {name!r}")
        found = held[name]
        if isinstance(found, Bracket):
            return found
        return found[0][1] if len(found) == 1 else dict(found)

    @property
    def question(self) -> str:
        """The question of the report, in words."""
        return question(self)

    @property
    def command(self) -> str:
        """The command line that computes this report again."""
        return text.command(self.spec)

    def __str__(self) -> str:
        return text.plain(self)

    def __rich__(self) -> Any:
        return text.rich_form(self)

    def _repr_markdown_(self) -> str:
        return self.to_markdown()

    def _repr_html_(self) -> str:
        from .html import fragment

        return fragment(self)

    def save(self, path: str | Path, format: str | None = None, **metadata: Any) -> None:
        """Write the report to a file, which is replaced where it exists.

        Args:
            path: of the file.
            format: name of a registered format, such as "html"; default what the name of the file
                ends in, else "text".
            **metadata: what the format takes beside the report, as :meth:`to_registry` does.

        Raises:
            ValueError: there is no such format.
            ImportError: the format needs a module that is missing (the ``report`` extra).

        Example:
            >>> import pathlib, tempfile
            >>> import jaxgdp
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = pathlib.Path(folder) / "report.md"
            ...     jaxgdp.report(jaxgdp.Gaussian(2.0)).save(path)
            ...     path.read_text(encoding="utf-8")[:18]
            '### Privacy report'
        """
        from . import formats

        chosen = formats.of_path(path) if format is None else formats.named(format)
        chosen.save(self, path, **metadata)

    def to_markdown(self) -> str:
        """The report as a Markdown list and tables."""
        return text.markdown(self)

    def to_html(self) -> str:
        """The report as one HTML page for readers who are no specialists.

        The page needs no network and no scripts; it prints on A4.

        Raises:
            ImportError: matplotlib is missing (the ``report`` extra).
        """
        from .html import page

        return page(self)

    def to_pdf(self, path: str | Path) -> None:
        """:meth:`to_html`'s content as a PDF file, with the description of the mechanism attached.

        Args:
            path: of the file, which is replaced where there is one.

        Raises:
            ImportError: matplotlib or fpdf2 is missing (the ``report`` extra).
        """
        from .pdf import write

        write(self, path)

    def to_registry(self, *, delta: float | None = None, **metadata: Any) -> dict[str, Any]:
        """The report as an entry of OpenDP's registry of deployments (its schema of 2025).

        ε, rounded up, and δ go into ``privacy_parameters``; μ with its floor and everything else
        into ``privacy_parameters_details``.

        Args:
            delta: which of the report's δ to state ε for; default 1e-5, or the first where that is
                not among them.
            **metadata: any key of the schema but the numbers, by its own name (``name``,
                ``data_curators``, ``model_name``, …) or in tables (``basic={…}``). A field that the
                schema requires and that is not given is "Not stated", and listed in the notes.

        Returns:
            A dictionary ready for YAML (``jaxgdp.interop.registry.dump``) or JSON.

        Raises:
            ValueError: an unknown key, a value that the schema does not allow, a δ that the report
                does not have, or no finite ε.

        Example:
            >>> import jaxgdp
            >>> report = jaxgdp.report(jaxgdp.Gaussian(2.0))
            >>> entry = report.to_registry(name="Counts", data_curators=["Us"])
            >>> sorted(entry)
            ['deployment', 'status', 'tier', 'url_slug']
        """
        from ..interop.registry import from_report
        from . import words

        said = {
            "sampling": words.sampling(self.spec),
            "adjacency": words.adjacency(self),
            "unit": words.unit(self),
            "not_counted": "; ".join(words.NOT_COUNTED),
        }
        return from_report(self, said, delta=delta, **metadata)

    def curve(self) -> TradeoffCurve:
        """The :class:`jaxgdp.TradeoffCurve` behind the numbers, computed again if need be."""
        if self._curve is not None:
            return self._curve
        composition, _, settings, _ = _settled(
            from_dict(self.spec, "spec of the report"), dict.fromkeys(SETTINGS)
        )
        return _whole_curve(composition, settings)

    def to_dict(self) -> dict:
        """The report as values ready for JSON: infinities are the text "inf", NaN is ``None``."""
        return stored.plain_values(self)

    def to_json(self) -> str:
        """:meth:`to_dict` as strict JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    @classmethod
    def from_dict(cls, data: dict) -> Report:
        """The inverse of :meth:`to_dict`; ``recompute`` of this folder computes again.

        Raises:
            ValueError: a key is missing or holds something else; names it.
        """
        return cls(**stored.values_back(cls, data))


def _settled(
    mechanism: Mechanism | Composition | Spec, given: dict[str, Any]
) -> tuple[Composition, dict[str, str], dict[str, Any], dict[str, Any]]:
    """(composition, words, settings, description): what is not given is described, or default."""
    words, content, settings, place = {}, None, {}, ""
    if isinstance(mechanism, Spec):
        place = f"{mechanism.source}: "
        words = {"title": mechanism.title, "neighbours": mechanism.neighbours}
        words = {key: value for key, value in words.items() if value}
        content, settings, mechanism = mechanism.content, mechanism.settings, mechanism.mechanism
    settings = {
        key: given[key] if given[key] is not None else settings.get(key, DEFAULTS[key])
        for key in SETTINGS
    }
    composition = as_composition(mechanism)
    if composition.shape != ():
        raise ValueError(
            f"{place}mechanism must be scalar (shape ()) for a report, got shape"
            f" {composition.shape}"
        )
    place = place if given["adjacency"] is None else ""
    settings["adjacency"] = Adjacency.checked(settings["adjacency"], f"{place}adjacency").value
    settings["rtol"] = float(relative_width("rtol", settings["rtol"]))
    settings["fpr_floor"] = float(floor_rate("fpr_floor", settings["fpr_floor"]))
    settings["approximation"] = float(open_unit("approximation", settings["approximation"]))
    for name in SEVERAL:
        settings[name] = np.atleast_1d(open_unit(name, settings[name])).reshape(-1).tolist()
    changed = {key: value for key, value in settings.items() if _differs(value, DEFAULTS[key])}
    if content is not None and "deployment" in content:
        if Adjacency(settings["adjacency"]).replaces:
            raise ValueError(f"{place}adjacency of a deployment is part of it, got 'replace_one'")
        kept = ("title", "neighbours", "deployment")
        content = {key: content[key] for key in kept if key in content} | changed
    else:
        content = to_dict(composition, **words, **changed)
    return composition, words, settings, content


def _differs(value: Any, default: Any) -> bool:
    return tuple(value) != default if isinstance(default, tuple) else value != default


@renamed_arguments(deltas="delta", fprs="fpr")
@show_progress("measuring")
@documented
def report(
    mechanism: Mechanism | Composition | Spec,
    *,
    rtol: float | None = None,
    fpr_floor: float | None = None,
    adjacency: str | None = None,
    delta: ArrayLike | None = None,
    fpr: ArrayLike | None = None,
    approximation: float | None = None,
) -> Report:
    """Everything worth publishing about one mechanism, in the two tiers of Gomez 2025.

    Args:
        mechanism: a scalar mechanism or composition, or a :class:`jaxgdp.spec.Spec`, whose settings
            count where no other is given.
        {rtol, fpr_floor, adjacency}
        delta: δ at which to give ε, one or several in (0, 1); default 1e-3, 1e-5, 1e-6, 1e-10.
        fpr: FPR at which to give the TPR, one or several in (0, 1); default 1e-10, 1e-9, …, 0.1.
        {approximation}

    Returns:
        A :class:`Report`; of every bracket but those of ``fnrs``, report the upper side.

    Raises:
        ValueError: an argument is out of range, or the mechanism is batched (before tracing).

    Example:
        >>> import jaxgdp
        >>> jaxgdp.report(jaxgdp.Gaussian(2.0)).tier
        'I'
    """
    given = {
        "rtol": rtol,
        "fpr_floor": fpr_floor,
        "adjacency": adjacency,
        "delta": delta,
        "fpr": fpr,
        "approximation": approximation,
    }
    composition, words, settings, content = _settled(mechanism, given)
    curve = _whole_curve(composition, settings)

    best_fpr = float(curve.advantage_fpr())
    codes: dict[str, int] = {}

    def ask(name: str, argument: ArrayLike | None = None) -> Bracket:
        bracket, status = curve.answer(name, argument)
        codes[name] = max(codes.get(name, 0), int(np.max(status)))
        return bracket

    regret = _scalar(ask("regret"))
    verdict = None
    with warnings.catch_warnings():
        # (the status tells a contradiction; nothing is built on one)
        warnings.simplefilter("error", ContradictionWarning)
        try:
            verdict = identify(curve)
        except ContradictionWarning:
            codes["mu"] = int(Status.CONTRADICTION)
    tier = "I" if regret.upper < TIER_LIMIT else "II"
    tpr_fprs, curve_fprs = (*settings["fpr"], best_fpr), (*CURVE_FPRS, best_fpr)
    return Report(
        title=words.get("title", ""),
        neighbours=words.get("neighbours", ""),
        mechanism=describe(composition),
        adjacency=settings["adjacency"],
        tier=tier,
        fpr_floor=settings["fpr_floor"],
        approximation=settings["approximation"],
        regret=regret,
        mu=_scalar(ask("mu")),
        approximate_mu=_scalar(ask("approximate_mu", settings["approximation"])),
        epsilons=_paired(settings["delta"], ask("epsilon", np.array(settings["delta"]))),
        advantage=_scalar(ask("advantage")),
        tprs=_paired(tpr_fprs, ask("tpr", np.array(tpr_fprs))),
        fnrs=_paired(curve_fprs, ask("beta", np.array(curve_fprs))) if tier == "II" else (),
        others=tuple(_others(ask)),
        advantage_fpr=best_fpr,
        tail_mu=float(curve.tail_mu),
        status=_status(codes, composition),  # (of all that has been asked above)
        rtol=settings["rtol"],
        spec=content,
        version=__version__,
        date=today(),
        software=_software(),
        _curve=curve,
        is_gdp=None if verdict is None else verdict.is_gdp,
        same_mu=None if verdict is None else verdict.fpr_floor == 0.0,
        gdp_reason="" if verdict is None else verdict.reason,
    )


def _whole_curve(composition: Composition, settings: dict[str, Any]) -> TradeoffCurve:
    return tradeoff(
        composition, **{key: settings[key] for key in ("rtol", "fpr_floor", "adjacency")}
    )


def _software() -> dict[str, str]:
    versions = {name: metadata.version(name) for name in ("jax", "numpy", "scipy")}
    return {"jaxgdp": __version__, **versions, "python": platform.python_version()}


def _others(ask: Callable[..., Bracket]) -> Iterator[tuple[str, float | None, Bracket]]:
    """(name, argument, bracket) of every quantity that wants a row and has no field."""
    own = {each.metadata["quantity"] for each in Report.certified_fields()}
    for quantity in REGISTRY.values():
        if quantity.name in own or quantity.reported == ():
            continue
        if quantity.own_argument is None:
            yield quantity.name, None, _scalar(ask(quantity.name))
            continue
        for argument in (quantity.default,) if quantity.reported is None else quantity.reported:
            if argument is not None:
                yield quantity.name, float(argument), _scalar(ask(quantity.name, argument))


def _status(codes: dict[str, int], composition: Composition) -> str:
    """The faults, worst first, with their quantities and reasons; "ok" where there are none."""
    wrong = sorted({code for code in codes.values() if code}, reverse=True)
    names = lambda code: ", ".join(name for name, mine in codes.items() if mine == code)
    told = (f"{STATUS[code]} ({names(code)})" for code in wrong)
    kinds = {type(part).__name__: part.why_not_tight for part in composition.mechanisms}
    why = (f"{kind}: {text}" for kind, text in kinds.items() if text and wrong)
    return "; ".join([*told, *why]) or STATUS[0]


def _scalar(bracket: Bracket) -> Bracket:
    return Bracket(np.float64(bracket.lower), np.float64(bracket.upper))


def _paired(arguments: Iterable[float], bracket: Bracket) -> tuple[tuple[float, Bracket], ...]:
    sides = zip(arguments, bracket.lower, bracket.upper, strict=True)
    return tuple((float(a), Bracket(np.float64(low), np.float64(high))) for a, low, high in sides)
