"""From any privacy profile to Gaussian DP and back: identify, measure and amplify (Liu et al.
2022).

A *source* is a mechanism, a composition, a :class:`jaxgdp.TradeoffCurve`, a profile of
:func:`refine`, or a callable ε ↦ δ, an upper bound on the profile for both orders of the
neighbours."""

from .clip_rectify import Amplified, clip_and_rectify, clip_and_rectify_outputs, clipped_fpr
from .head import Head, head, head_mu
from .identify import Verdict, identify
from .profile import Profile, refine
from .subsampling import poisson_mask, subsample
from .summary import Summary, summarize
from .tail import tail_mu
from .transformation import gdp_transformation

__all__ = [
    "Amplified",
    "Head",
    "Profile",
    "Summary",
    "Verdict",
    "clip_and_rectify",
    "clip_and_rectify_outputs",
    "clipped_fpr",
    "gdp_transformation",
    "head",
    "head_mu",
    "identify",
    "poisson_mask",
    "refine",
    "subsample",
    "summarize",
    "tail_mu",
]
