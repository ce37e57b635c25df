"""The defaults of every entry point, written once."""

from __future__ import annotations

RTOL = 1e-3  # relative accuracy of what is asked
FPR_FLOOR = 1e-10  # smallest error rate at which μ must hold
ADJACENCY = "add_remove"
DEEPEST = 1e-300  # smallest error rate out to which whole curves are known

DELTA = 1e-5  # at which ε is asked
EPSILON = 1.0  # at which δ is asked, nats
FPR = 1e-3  # at which TPR and FNR are asked
APPROXIMATION = 1e-10  # the probability d up to which d-approximate μ holds
PRIOR = 0.5  # of the Bayes risk: the probability that the record is absent

REPORT_DELTAS = (1e-3, 1e-5, 1e-6, 1e-10)  # of a report's ε
REPORT_FPRS = tuple(float(f"1e-{k}") for k in range(10, 0, -1))  # of a report's TPR
