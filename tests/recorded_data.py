"""Where the data of the tests is: tables of cases, real pods, real admission reviews, real
launches.

tests/data/README.md says where each comes from.
"""

from pathlib import Path
from typing import Any, Final

import yaml

DATA: Final = Path(__file__).resolve().parent / "data"
# POST bodies, and pods as controllers make them.
PODS: Final = DATA / "pods"
# How the names of those begin that have no class.
LEFT_ALONE: Final = ("z2jh-core", "z2jh-continuous", "z2jh-hook", "binderhub-image")
# AdmissionReview v1 requests as an API server sent them.
REVIEWS: Final = DATA / "admission-reviews"
# BinderHub's launch archive of mybinder.org, ten days.
LAUNCHES: Final = DATA / "launches" / "mybinder-launches-2019-05-22_2019-05-31.jsonl.gz"
# Values of hubs, and objects that hold them, one fault of a real report each.
HUBS: Final = DATA / "hubs"
PUBLIC_HUBS: Final = DATA / "public-hubs"
# Values, and what is said of them or made of them.
VALUES: Final = DATA / "values"


def rows(name: str) -> list[Any]:
    """The cases of a table in `cases`, for `pytest.mark.parametrize`."""
    table = yaml.safe_load((DATA / "cases" / f"{name}.yaml").read_text())
    return [tuple(row) if isinstance(row, list) else row for row in table]


def object_of(name: str) -> Any:
    """An object of `objects`."""
    return yaml.safe_load((DATA / "objects" / f"{name}.yaml").read_text())


def printed(name: str) -> str:
    """What a command prints, as `printed` has it."""
    return (DATA / "printed" / f"{name}.txt").read_text()
