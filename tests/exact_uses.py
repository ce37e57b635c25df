"""Two and three uses of a mixture of shifts by quadrature, with doubles: an oracle that shares no
code with brackets."""

import numpy as np
from scipy.special import log_ndtr, logsumexp

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def _log_ratio(tau, w, z):
    return logsumexp(np.log(w) + tau * (np.asarray(z)[..., None] - 0.5 * tau), axis=-1)


def _one_use(tau, w, level, order):
    """E(L − e^level)₊ of removing, E(1 − e^{−level}·L)₊ of adding, for levels of any shape."""
    low, high = np.full(np.shape(level), -60.0), np.full(np.shape(level), 60.0 + tau.max())
    sign = 1.0 if order == "remove" else -1.0
    for _ in range(70):
        middle = 0.5 * (low + high)
        less = _log_ratio(tau, w, middle) < sign * level
        low, high = np.where(less, middle, low), np.where(less, high, middle)
    side = sign * (tau - high[..., None])
    log_q = logsumexp(np.log(w) + log_ndtr(side), axis=-1)
    log_p = log_ndtr(-sign * high)
    first, second = (log_q, log_p) if sign > 0.0 else (log_p, log_q)
    first, second = np.exp(first), np.exp(np.minimum(level + second, 700.0))
    return np.maximum(first - second, 0.0)


def _outputs(tau, w, level):
    """Nodes and weights of Lebesgue measure within reach of every shift, with an end of a stretch
    where a loss is left for the other use that its small shifts all have, nearly.
    """
    ends = np.concatenate([np.arange(-10.0, 10.5, 1.0) + t for t in np.append(0.0, tau)])
    for loss in np.log(np.cumsum(w)):
        low, high = -60.0, 60.0 + tau.max()
        for _ in range(60):
            middle = 0.5 * (low + high)
            less = _log_ratio(tau, w, middle) < level - loss
            low, high = (middle, high) if less else (low, middle)
        ends = np.append(ends, high)
    ends = np.unique(np.round(ends, 12))
    width, middle = np.diff(ends), 0.5 * (ends[1:] + ends[:-1])
    z = (middle[:, None] + 0.5 * width[:, None] * _NODES).ravel()
    return z, (0.5 * width[:, None] * _WEIGHTS).ravel()


def delta_of_uses(sigma, shifts, weights, uses, epsilon, order):
    """δ(ε) of two or three uses, to about 1e-11 of itself and 1e-14."""
    tau, w = np.asarray(shifts, float) / sigma, np.asarray(weights, float) / np.sum(weights)
    order_of = 1.0 if order == "remove" else -1.0
    z, dz = _outputs(tau, w, order_of * epsilon)
    loss = _log_ratio(tau, w, z)
    log_p = np.log(dz) - 0.5 * z * z - 0.5 * np.log(2.0 * np.pi)
    first = log_p + loss if order == "remove" else log_p
    loss = loss if order == "remove" else -loss
    keep = first > -70.0
    first, loss = first[keep], loss[keep]
    if uses == 3:
        first = (first[:, None] + first[None, :]).ravel()
        loss = (loss[:, None] + loss[None, :]).ravel()
        keep = first > -60.0
        first, loss = first[keep], loss[keep]
    total = 0.0
    for part in np.array_split(np.arange(len(first)), len(first) // 20000 + 1):
        total += np.sum(np.exp(first[part]) * _one_use(tau, w, epsilon - loss[part], order))
    return total
