"""Figures: functions that take results and a matplotlib ``Axes`` or ``Figure`` and give it back.

Colours are those of Okabe and Ito; dashes and markers distinguish the same lines in grey.
:func:`faults` finds what keeps a figure from being read. All of it needs the ``plot`` extra."""

from .audit import audit_verdict
from .band import band
from .bridge import bridge_panels
from .budget import budget
from .calibration import calibration_curves
from .closing import closing_brackets
from .heat_map import regret_heat_map
from .legibility import faults
from .levels import parts
from .noise import risks_against_noise
from .outline import Outline, below, outline
from .profile import epsilon_against_delta, gdp_transformation, privacy_profile
from .regret import REGRET_LIMIT, regret_landscape, regret_panels
from .samplers import sampler_bands, sampler_panels
from .saving import save
from .schedule import noise_schedules
from .strategies import strategies
from .style import BLACK, COLOURS, DASHES, from_floor, line_style, marked
from .tiers import report_tier
from .tradeoff import compare_curves, gaussian_curve, square_axes, tradeoff_band, tradeoff_curve
from .updates import noise_per_update
from .wealth import wealth_over_time

__all__ = [
    "BLACK",
    "COLOURS",
    "DASHES",
    "REGRET_LIMIT",
    "Outline",
    "audit_verdict",
    "band",
    "below",
    "bridge_panels",
    "budget",
    "calibration_curves",
    "closing_brackets",
    "compare_curves",
    "epsilon_against_delta",
    "faults",
    "from_floor",
    "gaussian_curve",
    "gdp_transformation",
    "line_style",
    "marked",
    "noise_per_update",
    "noise_schedules",
    "outline",
    "parts",
    "privacy_profile",
    "regret_heat_map",
    "regret_landscape",
    "regret_panels",
    "report_tier",
    "risks_against_noise",
    "sampler_bands",
    "sampler_panels",
    "save",
    "square_axes",
    "strategies",
    "tradeoff_band",
    "tradeoff_curve",
    "wealth_over_time",
]
