"""A report for one kind of reader: a lawyer, the readers of a paper, those of a model card."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..numerics.rounding import rounded_outward
from ..numerics.validation import one_of
from . import strength, words
from .counted import counted_sentence, not_counted
from .statements import latex, latex_text, model_card, paragraph, short_sentence, usual_delta

if TYPE_CHECKING:
    from .content import Report

_LEGAL_SECTIONS = ("strength", "figures", "assumed", "words", "check")
_WORDS = ("FPR", "TPR", "advantage", "ε at δ", "μ")  # that the legal form uses


class Audience(NamedTuple):
    """One kind of reader.

    Attributes:
        name: as users write it.
        text: report → text.
        endings: of files that may hold the text.
        page: report → HTML page; None where there is only text.
    """

    name: str
    text: Callable[[Report], str]
    endings: tuple[str, ...]
    page: Callable[[Report], str] | None = None

    def of_path(self, path: Path) -> Callable[[Report], str]:
        """What writes a file of that ending.

        Raises:
            ValueError: no text of this kind belongs into such a file.
        """
        ending = path.suffix.lower()
        if self.page is not None and ending == ".html":
            return self.page
        if ending not in (*self.endings, ".txt", ""):
            endings = [*self.endings, *([".html"] if self.page is not None else [])]
            raise ValueError(
                f"--for {self.name}: let --output end in {' or '.join(endings)}, got {path.name!r}"
            )
        return self.text


def _delta(report: Report) -> float:
    return usual_delta(delta for delta, _ in report.epsilons)


def legal(report: Report) -> str:
    """Markdown without tiers, floors and tables: strength, statement, assumptions, omissions."""
    title = report.title or "Privacy of a release"
    told = [strength.sentence(report), *words.otherwise(report), *words.verdict(report)]
    assumed = [
        ("Who is protected", words.unit(report)),
        ("How records are used", words.sampling(report.spec)),
        ("Which data sets are compared", words.adjacency(report)),
        ("Against whom", words.ATTACKER),
    ]
    meant = [(name, text) for name, text in words.definitions(report) if name in _WORDS]
    lines = [f"# {title}", "", "## How strong the protection is", ""]
    lines += [line for sentence in told for line in (sentence, "")]
    lines += ["## The statement to publish", "", f"> {short_sentence(report, _delta(report))}", ""]
    lines += ["## What is assumed", "", *(f"- **{name}**: {text}" for name, text in assumed), ""]
    if report.counted:
        lines += ["## What is counted", "", counted_sentence(report), ""]
    lines += ["## What is not counted", "", *(f"- {text}" for text in not_counted(report)), ""]
    lines += ["## Words", "", f"- **strength**: {strength.explanation()}"]
    lines += [f"- **{name}**: {text}" for name, text in meant]
    return "\n".join([*lines, "", f"Computed by jaxgdp {report.version}: `{report.command}`"])


def _legal_page(report: Report) -> str:
    from .html import page

    return page(report, _LEGAL_SECTIONS)


def paper(report: Report) -> str:
    """LaTeX: the sentence, a table of μ, ε and rates, and how to compute them again."""
    up = lambda value: rounded_outward(float(value), up=True, digits=4)
    rows = [
        (f"μ, error rates ≥ {report.fpr_floor:g}", report.mu),
        (f"μ but for probability d = {report.approximation:g}", report.approximate_mu),
        ("regret Δ of the first μ", report.regret),
        *((f"ε at δ = {delta:g}", bracket) for delta, bracket in report.epsilons),
        ("membership advantage", report.advantage),
        *((f"TPR at FPR = {fpr:g}", bracket) for fpr, bracket in report.tprs[:-1]),
    ]
    lines = [latex(report, _delta(report)), "", r"\begin{tabular}{lr}", r"\hline"]
    lines.append(r"quantity & at most \\ \hline")
    for name, bracket in rows:
        lines.append(
            latex_text(f"{name.replace('e-0', 'e-')}") + f" & {up(bracket.upper)}" + r" \\"
        )
    lines += [r"\hline", r"\end{tabular}", ""]
    command = report.command.replace("_", r"\_").replace("--", "-{}-")
    if report.counted:
        lines += [latex_text(f"Counted: {counted_sentence(report)}."), ""]
    lines.append(f"% Computed by jaxgdp {report.version}; again by: {report.command}")
    return "\n".join([*lines, rf"Certified upper bounds, computed again by \texttt{{{command}}}."])


def card(report: Report) -> str:
    """A model card: YAML between its rules, and the paragraph."""
    delta = _delta(report)
    return "\n".join(
        ["---", model_card(report, delta), "---", "", "## Privacy", "", paragraph(report, delta)]
    )


AUDIENCES = {
    each.name: each
    for each in (
        Audience("legal", legal, (".md",), _legal_page),
        Audience("paper", paper, (".tex",)),
        Audience("card", card, (".md",)),
    )
}


def named(name: str) -> Audience:
    """The audience of that name.

    Raises:
        ValueError: there is none.
    """
    return AUDIENCES[one_of("--for", name, tuple(AUDIENCES))]
