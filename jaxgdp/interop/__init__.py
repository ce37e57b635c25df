"""Formats of other libraries: no other code depends on them, nor does ``import jaxgdp`` load them.

- :mod:`jaxgdp.interop.dp_accounting`: events, accountants and privacy loss distributions of
  Google's dp_accounting.
- :mod:`jaxgdp.interop.opacus`: an accountant for Opacus' ``PrivacyEngine``; needs neither Opacus
  nor torch.
- :mod:`jaxgdp.interop.jax_privacy`: the accountant function and execution plans of jax_privacy.
- :mod:`jaxgdp.interop.registry`: entries of OpenDP's registry of deployments, read with brackets
  and written from reports.
- :mod:`jaxgdp.interop.gdpnum`, :mod:`jaxgdp.interop.riskcal`: the entry points of those libraries,
  certified.

Every number handed out is the safe side of a certified bracket: upper for μ, ε, δ, advantage, TPR
and regret, lower for β.
Each is loaded when it is first requested (PEP 562)."""

from __future__ import annotations

import importlib
import types

_MODULES = (
    "dp_accounting",
    "gdpnum",
    "jax_privacy",
    "jax_privacy_auditing",
    "opacus",
    "registry",
    "riskcal",
)


def __getattr__(name: str) -> types.ModuleType:
    if name in _MODULES:
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
