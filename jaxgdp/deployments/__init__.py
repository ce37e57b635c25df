"""Real deployments, shipped as data with their citations: functions that return the mechanism run.

``about(name)`` returns the table from which a mechanism is built, its source and its citation;
``names()`` lists the deployments. The data are plain TOML files in the folder ``data`` beside this
one."""

from .catalogue import about, mechanism, names
from .census import (
    census_2020_dhc_housing,
    census_2020_dhc_persons,
    census_2020_pl94_persons,
    census_2020_pl94_units,
    census_2022_august,
)
from .deployment import Deployment
from .dpsgd import de_et_al_2022

__all__ = [
    "Deployment",
    "about",
    "census_2020_dhc_housing",
    "census_2020_dhc_persons",
    "census_2020_pl94_persons",
    "census_2020_pl94_units",
    "census_2022_august",
    "de_et_al_2022",
    "mechanism",
    "names",
]
