"""Records of OpenDP's registry of deployments of differential privacy, read with certified brackets
and written from reports.

:func:`read` turns a record's (ε, δ), ρ or ε into brackets of μ, advantage and TPR, names what is
assumed, and says where its numbers disagree with each other; ``jaxgdp.report(…).to_registry(…)``
gives a record that fits the schema; :func:`problems` says what does not."""

from .claims import Claim, Printed
from .files import dump, load
from .record import Record, from_dict, read
from .schema import RECORD, REQUIRED, STATUSES, VARIANTS, Leaf, leaves, problems
from .write import from_report

__all__ = [
    "RECORD",
    "REQUIRED",
    "STATUSES",
    "VARIANTS",
    "Claim",
    "Leaf",
    "Printed",
    "Record",
    "dump",
    "from_dict",
    "from_report",
    "leaves",
    "load",
    "problems",
    "read",
]
