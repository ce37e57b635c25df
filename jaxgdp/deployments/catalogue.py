"""Every deployment by name."""

from __future__ import annotations

from ..vocabulary import did_you_mean
from . import census, dpsgd
from .deployment import Deployment


def names() -> tuple[str, ...]:
    """Names of all deployments, each one scalar composition.

    Example:
        >>> "census_2020_pl94_persons" in names()
        True
    """
    return (*census.NAMES, *dpsgd.settings())


def about(name: str) -> Deployment:
    """Table, source and citation of a deployment; ``print`` it to read it.

    Args:
        name: one of :func:`names`.

    Raises:
        ValueError: there is none of that name; lists those there are.

    Example:
        >>> about("census_2022_august").rows[0][:2]
        ('US', 'query 1')
    """
    if name in census.NAMES:
        return census.deployment(name)
    if name in dpsgd.settings():
        return dpsgd.deployment(name)
    hint = did_you_mean(str(name), names()) or ";"
    raise ValueError(f"no deployment is called {name!r}{hint} there are {', '.join(names())}")


def mechanism(name: str):
    """The composition of a deployment by name.

    Args:
        name: one of :func:`names`.

    Returns:
        A scalar :class:`jaxgdp.Composition`.

    Raises:
        ValueError: there is none of that name; lists those there are.

    Example:
        >>> mechanism("de_et_al_2022_table4_epsilon_8").shape
        ()
    """
    return about(name).mechanism()
