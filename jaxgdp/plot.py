"""Figures: each function takes results and an ``Axes``, and computes nothing."""

from __future__ import annotations

import numpy as np

# Okabe and Ito's palette, told apart by colour-blind readers; its yellow is left out as too pale for print
BLACK = "#000000"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
REGRET_LIMIT = 0.01
_FLOOR = 1e-5
_STEP_DASHES = ((0, (1, 1)), (0, (4, 1.5)), "-")  # the largest number of steps is solid


def _shade(colour, strength: float):
    """A colour mixed with white: strength 1 leaves it, 0 is white."""
    return tuple(1.0 - strength * (1.0 - channel) for channel in colour[:3])


def regret_landscape(dataset, ax):
    """Δ against sampling rate: colour is the noise multiplier σ, darkness and dashes the number of steps T (Gomez 2025, Figure 3).

    Each band runs from the lower to the upper side of the bracket; the line is the upper side, the one to report.
    Values below 1e-5 are drawn at the bottom edge.

    Args:
        dataset: from ``jaxgdp.landscape.landscape`` or ``jaxgdp.sweep`` with μ and regret.
        ax: matplotlib ``Axes`` to draw on.

    Returns:
        The same ``ax``.

    Raises:
        ImportError: matplotlib is missing (the ``plot`` extra).
    """
    try:
        import matplotlib as mpl
        from matplotlib.lines import Line2D
    except ImportError:
        raise ImportError("figures need matplotlib: pip install 'jaxgdp[plot]'") from None
    ordered = dataset.transpose("noise_multiplier", "sampling_prob", "num_steps").sortby(list(dataset.sizes))
    sigmas, rates, steps = (ordered[name].values for name in ("noise_multiplier", "sampling_prob", "num_steps"))
    colours = mpl.colormaps["viridis"](np.linspace(0.0, 0.88, len(sigmas)))
    strengths = np.linspace(0.6, 1.0, len(steps)) if len(steps) > 1 else np.ones(1)
    dashes = [_STEP_DASHES[(k - len(steps)) % len(_STEP_DASHES)] for k in range(len(steps))]
    ceiling = float(np.max(ordered["regret"].values, where=np.isfinite(ordered["regret"].values), initial=REGRET_LIMIT))
    marker = "o" if len(rates) == 1 else None

    for i in range(len(sigmas)):
        for k in range(len(steps)):
            upper = np.maximum(ordered["regret"].values[i, :, k], _FLOOR)
            lower = np.maximum(ordered["regret_lower"].values[i, :, k], _FLOOR)
            colour = _shade(colours[i], strengths[k])
            ax.fill_between(rates, lower, upper, color=colour, alpha=0.35, linewidth=0)
            style = {"color": colour, "linestyle": dashes[k], "marker": marker}
            ax.plot(rates, upper, linewidth=1.3, markersize=4, zorder=2 + strengths[k], **style)

        label = np.argmax(ordered["regret"].values[i, :, 0])
        if len(rates) > 2 and ordered["regret"].values[i, label, 0] > _FLOOR:
            ax.annotate(
                rf"$\sigma$ = {sigmas[i]:g}",
                (rates[label], ordered["regret"].values[i, label, 0]),
                xytext=(0, 3),
                textcoords="offset points",
                ha="center",
                fontsize=7,
                color=colours[i],
                zorder=5,
                bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.5},
            )

    ax.axhline(REGRET_LIMIT, color="black", linestyle="--", linewidth=1.0, zorder=4)
    ax.annotate(
        rf"$\Delta = {REGRET_LIMIT:g}$",
        xy=(0.0, REGRET_LIMIT),
        xycoords=("axes fraction", "data"),
        xytext=(6, 5),
        textcoords="offset points",
        fontsize=9,
        zorder=5,
        bbox={"facecolor": "white", "alpha": 0.85, "edgecolor": "none", "pad": 1.0},
    )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_ylim(_FLOOR, max(2.0 * ceiling, 10.0 * REGRET_LIMIT))
    if len(rates) > 1:
        ax.set_xlim(rates[0], rates[-1])
    ax.set_xlabel("sampling rate $p$")
    ax.set_ylabel(r"regret $\Delta$ of reporting $\mu$")
    ax.grid(True, which="major", linewidth=0.4, alpha=0.5)

    by_colour = [Line2D([], [], color=c, linewidth=2.5, label=f"{s:g}") for s, c in zip(sigmas, colours, strict=True)]
    greys = [_shade((0.0, 0.0, 0.0), s) for s in strengths]
    by_shade = [
        Line2D([], [], color=g, linestyle=d, linewidth=1.8, label=f"{t:g}")  # pyright: ignore[reportArgumentType]
        for t, g, d in zip(steps, greys, dashes, strict=True)
    ]
    first = ax.legend(
        handles=by_colour, title=r"noise $\sigma$", loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False
    )
    ax.add_artist(first)
    ax.legend(handles=by_shade, title="steps $T$", loc="lower left", bbox_to_anchor=(1.01, 0.0), frameon=False)
    return ax


def regret_heat_map(dataset, axes):
    """Δ over noise multiplier and sampling rate as colours, one panel for each number of steps, with the contour of Δ = 0.01.

    Colours and the solid contour are of the upper side, the one to report; the dashed contour is of the lower side, and shows only where
    the brackets are wide. Values below 1e-5 have the colour of 1e-5. In a figure that follows the mouse (a notebook with ipympl), the
    status line tells the setting and its bracket.

    Args:
        dataset: from ``jaxgdp.landscape.landscape`` or ``jaxgdp.sweep`` with the regret.
        axes: as many matplotlib ``Axes`` as the data set has numbers of steps.

    Returns:
        The same ``axes``.

    Raises:
        ValueError: there are more or fewer axes than numbers of steps.
        ImportError: matplotlib is missing (the ``plot`` extra).
    """
    try:
        from matplotlib.colors import LogNorm
    except ImportError:
        raise ImportError("figures need matplotlib: pip install 'jaxgdp[plot]'") from None
    ordered = dataset.transpose("noise_multiplier", "sampling_prob", "num_steps").sortby(list(dataset.sizes))
    sigmas, rates, steps = (ordered[name].values for name in ("noise_multiplier", "sampling_prob", "num_steps"))
    panels = list(np.atleast_1d(axes))
    if len(panels) != len(steps):
        raise ValueError(f"axes must be one for each of the {len(steps)} numbers of steps, got {len(panels)}")
    upper, lower = (np.maximum(ordered[name].values, _FLOOR) for name in ("regret", "regret_lower"))
    norm = LogNorm(_FLOOR, max(float(np.max(upper)), 10.0 * REGRET_LIMIT))
    drawn = None
    for k, ax in enumerate(panels):
        drawn = ax.pcolormesh(_edges(rates), _edges(sigmas), upper[:, :, k], norm=norm, cmap="viridis", rasterized=True)
        for side, dashes in ((upper, "solid"), (lower, "dashed")):
            straddles = np.min(side[:, :, k]) < REGRET_LIMIT < np.max(side[:, :, k])
            if min(len(sigmas), len(rates)) > 1 and straddles:
                ax.contour(
                    rates,
                    sigmas,
                    side[:, :, k],
                    levels=[REGRET_LIMIT],
                    colors="white",
                    linestyles=dashes,
                    linewidths=1.2,
                )
        ax.set(xscale="log", yscale="log", title=f"$T$ = {steps[k]:g}", xlabel="sampling rate $p$")
        told = (ordered[name].values[:, :, k] for name in ("regret_lower", "regret"))
        ax.format_coord = _setting(rates, sigmas, *told)
    panels[0].set_ylabel(r"noise multiplier $\sigma$")
    label = rf"regret $\Delta$ (contour: {REGRET_LIMIT:g})"
    panels[0].figure.colorbar(drawn, ax=panels, label=label)
    return axes


def _edges(values):
    """Edges of the cells around points on a logarithmic axis."""
    logs = np.log(values)
    if len(logs) == 1:
        return np.exp(logs[0] + np.array([-0.5, 0.5]))
    middles = 0.5 * (logs[1:] + logs[:-1])
    return np.exp(np.concatenate([[2.0 * logs[0] - middles[0]], middles, [2.0 * logs[-1] - middles[-1]]]))


def _setting(rates, sigmas, lower, upper):
    """What the status line says at a place: the nearest setting and its bracket."""

    def told(x, y) -> str:
        j, i = (int(np.argmin(np.abs(np.log(values / at)))) for values, at in ((rates, x), (sigmas, y)))
        return f"σ = {sigmas[i]:.4g}, p = {rates[j]:.4g}: Δ in [{lower[i, j]:.4g}, {upper[i, j]:.4g}]"

    return told


def tradeoff_band(alpha, beta, ax, *, colour=COLOURS[0], label=None, linestyle="-", linewidth=1.5):
    """A certified trade-off curve: the band between its sides, and the lower side, the one to report, as a line.

    Args:
        alpha: FPRs, increasing.
        beta: bracket of the FNRs there, such as ``curve.beta(alpha)``.
        ax: matplotlib ``Axes`` to draw on.
        colour, label, linestyle, linewidth: of the line.

    Returns:
        The same ``ax``.
    """
    ax.fill_between(alpha, beta.lower, beta.upper, color=colour, alpha=0.3, linewidth=0)
    ax.plot(alpha, beta.lower, color=colour, label=label, linestyle=linestyle, linewidth=linewidth)
    return ax


def gaussian_curve(alpha, beta, ax, *, colour=BLACK, label=None):
    """A Gaussian trade-off curve as a dotted line on top of what is there.

    Args:
        alpha: FPRs, increasing. beta: f_μ there, such as ``jaxgdp.gdp.beta(alpha, mu)``.
        ax: matplotlib ``Axes`` to draw on.
        colour, label: of the line.

    Returns:
        The same ``ax``.
    """
    ax.plot(alpha, beta, color=colour, label=label, linestyle=(0, (1, 1.6)), linewidth=1.5, zorder=3)
    return ax


def square_axes(ax):
    """Axes of a trade-off plot: both error rates from 0 to 1, and the line of perfect privacy.

    Args:
        ax: matplotlib ``Axes``.

    Returns:
        The same ``ax``.
    """
    ax.plot([0.0, 1.0], [1.0, 0.0], color="0.75", linewidth=0.8, zorder=0)
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), xlabel="FPR", ylabel="FNR", aspect="equal")
    ax.grid(True, linewidth=0.4, alpha=0.5)
    return ax


def bridge_panels(epsilon, delta, transformation, tradeoff, mu, fpr_floor, figure):
    """A privacy profile, its GDP transformation and its trade-off curve side by side, each with that of one μ (Liu et al. 2022).

    Args:
        epsilon: ε, increasing. delta: (profile, that of μ) there. transformation: bracket of the GDP transformation there.
        tradeoff: (FPRs, FNRs of the curve, of μ). mu: the μ. fpr_floor: from which FPR on it holds; 0 for everywhere.
        figure: matplotlib ``Figure`` to draw on.

    Returns:
        The same ``figure``.
    """
    left, middle, right = figure.subplots(1, 3)
    name = rf"$\mu$ = {mu:.4g}"
    left.plot(epsilon, delta[0], color=COLOURS[0], linewidth=1.6)
    left.plot(epsilon, delta[1], color=BLACK, linestyle=(0, (1, 1.6)), linewidth=1.4, label=name)
    least = float(np.min(delta[0], where=delta[0] > 0.0, initial=1.0))
    left.set(
        xlabel=r"$\varepsilon$", ylabel=r"$\delta(\varepsilon)$", yscale="log", ylim=(max(0.3 * least, 1e-20), 1.5)
    )
    left.legend(frameon=False, fontsize=8)
    shown = np.isfinite(transformation.upper)
    middle.fill_between(
        epsilon[shown], transformation.lower[shown], transformation.upper[shown], color=COLOURS[0], alpha=0.3
    )
    middle.plot(epsilon[shown], transformation.upper[shown], color=COLOURS[0], linewidth=1.6)
    middle.axhline(mu, color=BLACK, linestyle=(0, (1, 1.6)), linewidth=1.4)
    middle.set(xlabel=r"$\varepsilon$", ylabel=r"$\mu_A(\varepsilon)$", ylim=(0.0, None))
    right.plot(tradeoff[0], tradeoff[1], color=COLOURS[0], linewidth=1.6)
    gaussian_curve(tradeoff[0], tradeoff[2], right, label=name)
    square_axes(right)
    note = "at every rate" if fpr_floor == 0.0 else f"from FPR {fpr_floor:.2g} on"
    right.set_title(note, fontsize=9)
    for ax in (left, middle):
        ax.grid(True, linewidth=0.4, alpha=0.5)
    return figure


def audit_verdict(verdict, ax):
    """An audit against a claim: the claim's curve as a band, error rates as counted, each with its confidence box.

    A box runs from the counted rates to their upper limits; its far corner is what is sure. A corner below the band refutes the
    claim. Both axes are symmetric-logarithmic, so that small rates show.

    Args:
        verdict: from ``jaxgdp.audit.verdict`` or ``jaxgdp.audit.one_run_verdict`` (of one run, the claim only). ax: matplotlib ``Axes``.

    Returns:
        The same ``ax``.
    """
    from matplotlib.patches import Rectangle

    alpha, beta = verdict.curve
    tradeoff_band(alpha, beta, ax, label=f"claimed: {verdict.claim}")
    points = verdict.points
    if points is not None:
        colour = COLOURS[1] if verdict.refuted else COLOURS[2]
        rows = zip(points.empirical_alpha, points.empirical_beta, points.alpha, points.beta, strict=True)
        for a, b, up, high in rows:
            ax.add_patch(Rectangle((a, b), up - a, high - b, facecolor=colour, alpha=0.18, edgecolor="none", zorder=1))
        ax.plot(points.empirical_alpha, points.empirical_beta, ".", color=colour, ms=4, label="counted")
        ax.plot(points.alpha, points.beta, "+", color=colour, ms=6, label=f"limits at {100 * verdict.confidence:g} %")
        if verdict.worst is not None:
            at = points.alpha[verdict.worst], points.beta[verdict.worst]
            ax.plot(*at, "o", mfc="none", mec=BLACK, ms=8, label="furthest below" if verdict.refuted else "closest")
    ax.plot([0.0, 1.0], [1.0, 0.0], color="0.75", linewidth=0.8, zorder=0)
    for axis in (ax.set_xscale, ax.set_yscale):
        axis("symlog", linthresh=1e-2)
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), xlabel="FPR", ylabel="FNR")
    ax.set_title("refuted" if verdict.refuted else "consistent", fontsize=10)
    ax.grid(True, linewidth=0.4, alpha=0.5)
    ax.legend(frameon=False, fontsize=7, loc="lower left")
    return ax


_SAMPLER_COLOURS = {
    "deterministic": BLACK,
    "shuffled": COLOURS[1],
    "poisson": COLOURS[0],
    "random_allocation": COLOURS[2],
}


def sampler_bands(dataset, ax, quantity="epsilon"):
    """One quantity of every batch sampler, from ``jaxgdp.compare_samplers``: the band between both sides, the side to report as a line.

    Along the axis of the data set that has several values (the first of noise multiplier, batch size and epochs that has); a bar for
    each sampler where none has.

    Args:
        dataset: from ``jaxgdp.compare_samplers``; of axes that are not drawn the first value is.
        ax: matplotlib ``Axes`` to draw on.
        quantity: one that the data set has.

    Returns:
        The same ``ax``.

    Raises:
        ValueError: the data set does not have the quantity.
    """
    if f"{quantity}_lower" not in dataset:
        raise ValueError(f"quantity must be one that the data set has, got {quantity!r}")
    labels = {"noise_multiplier": r"noise multiplier $\sigma$", "batch_size": "batch size", "epochs": "epochs"}
    along = next((axis for axis in labels if dataset.sizes[axis] > 1), None)
    others = {axis: 0 for axis in labels if axis != along}
    names = dataset["sampler"].values.tolist()
    spare = iter([colour for colour in COLOURS[3:]] * len(names))
    colours = {name: _SAMPLER_COLOURS.get(name) or next(spare) for name in names}
    for place, name in enumerate(names):
        one = dataset.isel(others).sel(sampler=name)
        lower, upper = one[f"{quantity}_lower"].values, one[quantity].values
        if along is None:
            ax.bar(place, upper - lower, bottom=lower, width=0.6, color=colours[name], alpha=0.35)
            ax.hlines([float(lower), float(upper)], place - 0.3, place + 0.3, color=colours[name], linewidth=1.5)
            continue
        at = one[along].values
        order = np.argsort(at)
        ax.fill_between(at[order], lower[order], upper[order], color=colours[name], alpha=0.3, linewidth=0)
        ax.plot(at[order], upper[order], color=colours[name], linewidth=1.5, label=name.replace("_", " "))
    if along is None:
        ax.set_xticks(range(len(names)), [name.replace("_", "\n") for name in names])
    else:
        ax.set_xlabel(labels[along])
        ax.legend(frameon=False, fontsize=8)
    ax.set_ylabel(dataset[quantity].attrs.get("symbol", quantity))
    ax.set_yscale("log")
    ax.grid(True, which="major", linewidth=0.4, alpha=0.5)
    return ax
