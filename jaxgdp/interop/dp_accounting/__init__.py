"""dp_accounting: events, accountants and loss distributions (``pip install "jaxgdp[interop]"``).

import dp_accounting
from jaxgdp.interop.dp_accounting import Accountant

accountant = Accountant()                          # in place of dp_accounting.pld.PLDAccountant()
accountant.compose(event).get_epsilon(1e-5)

"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .events import SUPPORTED, UnsupportedEvent, from_event
from .loss_distributions import from_pld, to_pld

if TYPE_CHECKING:
    from .accountant import Accountant

__all__ = ["SUPPORTED", "Accountant", "UnsupportedEvent", "from_event", "from_pld", "to_pld"]


def __getattr__(name: str) -> type[Accountant]:
    if name == "Accountant":
        try:
            from .accountant import Accountant
        except ImportError as error:
            from ...numerics.optional import missing

            raise missing("jaxgdp.interop.dp_accounting needs dp_accounting", "interop") from error
        return Accountant
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
