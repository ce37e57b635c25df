"""From any privacy profile to Gaussian DP and back: identify, measure, amplify (Liu et al. 2022).

A *source* is a mechanism, a composition, a :class:`jaxgdp.TradeoffCurve`, a profile of
:func:`refine`, or a callable ε ↦ δ, an upper bound on the profile for both orders of the
neighbours."""

from ..deprecation import renamed_names
from .clip_rectify import Amplified, clip_and_rectify, clip_and_rectify_outputs, clipped_fpr
from .group_profile import group_profile
from .head import Head, head, head_mu
from .hidden_state import (
    convex_constrained_mu,
    strongly_convex_cyclic_batches_mu,
    strongly_convex_full_batch_mu,
)
from .identify import GdpVerdict, identify
from .profile import Profile, refine
from .subsampling import poisson_mask, subsample
from .summary import Summary, summarize
from .tail import tail_mu
from .transformation import gdp_transformation

__all__ = [
    "Amplified",
    "GdpVerdict",
    "Head",
    "Profile",
    "Summary",
    "clip_and_rectify",
    "clip_and_rectify_outputs",
    "clipped_fpr",
    "convex_constrained_mu",
    "gdp_transformation",
    "group_profile",
    "head",
    "head_mu",
    "identify",
    "poisson_mask",
    "refine",
    "strongly_convex_cyclic_batches_mu",
    "strongly_convex_full_batch_mu",
    "subsample",
    "summarize",
    "tail_mu",
]

__getattr__ = renamed_names(__name__, Verdict=GdpVerdict)
