"""The contents of a report, every number a bracket with the side that is safe to report."""

from __future__ import annotations

import json
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import options
from ..bracket import Bracket
from . import stored, text
from .alternative import Alternative
from .words import question

if TYPE_CHECKING:
    from ..tradeoff import TradeoffCurve
    from .counted import Counted
    from .parts import Part

TIER_LIMIT = text.TIER_LIMIT
TPR_FPRS = options.REPORT_FPRS
# Gomez 2025, Section 4.3; α* is added to both
CURVE_FPRS = (1e-10, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 1e-1)


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
        proven: of the numbers, what is proven in exact arithmetic (``report --prove``); "" where
            nobody has tried.
        sampler: of a run, the sampler that the numbers are of; else "".
        alternatives: of a run, what holds if its batches were drawn in another way.
        rho: ρ of the whole, rounded up, where every part is a Gaussian or discrete one; else None.
        parts: of a description that names its parts or states budgets, a row for each.
        counted: what the numbers hold for beside the noise, a row for each.

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
    sampler: str = ""
    alternatives: tuple[Alternative, ...] = ()
    rho: float | None = None
    parts: tuple[Part, ...] = ()
    counted: tuple[Counted, ...] = ()
    date: str = field(default="", compare=False)
    software: dict = field(default_factory=dict, compare=False)
    proven: str = field(default="", compare=False)
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
        from .counted import counted_sentence, not_counted

        said = {
            "counted": counted_sentence(self),
            "sampling": words.sampling(self.spec),
            "adjacency": words.adjacency(self),
            "unit": words.unit(self),
            "not_counted": "; ".join(not_counted(self)),
        }
        return from_report(self, said, delta=delta, **metadata)

    def curve(self) -> TradeoffCurve:
        """The :class:`jaxgdp.TradeoffCurve` behind the numbers, computed again if need be."""
        if self._curve is not None:
            return self._curve
        from .settled import curve_again

        return curve_again(self.spec)

    def statement(self, style: str = "sentence", *, delta: float | None = None) -> str:
        """The report in a sentence or a block, for people who will not read all of it.

        Numbers have three digits, those of other samplers two, rounded to the safe side.

        Args:
            style: "sentence"; "paragraph" (with what an attacker can do, and what is not counted);
                "model-card" (a block of YAML); "latex" (a sentence).
            delta: which of the report's δ to state ε for; default 1e-5, or the first where that is
                not among them.

        Raises:
            ValueError: there is no such style, or no such δ in the report.

        Warns:
            UserWarning: δ is not below 1/n, so that it allows to publish a record or more.

        Example:
            >>> import jaxgdp
            >>> print(jaxgdp.report(jaxgdp.Gaussian(2.0)).statement())
            Released with Gaussian noise (noise multiplier 2). ε ≤ 2 at δ = 1e-5, μ ≤ 0.501 for...
        """
        from .statements import statement

        return statement(self, style, delta)

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
