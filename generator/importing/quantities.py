"""Turn zero-to-jupyterhub's sizes of users into Kubernetes quantities.

KubeSpawner reads K, M, G and T as powers of 1024, Kubernetes as powers of 1000. A placeholder that
copied the text `1G` would be 7 % smaller than the user whose room it keeps, and two of them would
have to go for one user.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from roost_core.objects.quantities import parse_hub_bytes, parse_quantity

# Beyond an exbibyte or a million CPUs nothing is a real size, and Kubernetes' 64-bit quantities
# overflow soon after.
_MAX_BYTES: Final = 2**60
_MAX_CPUS: Final = 1_000_000
MEMORY: Final = "bytes, or a number with K, M, G or T"
# What a user's size may be, by resource.
SIZE_EXPECTED: Final = {"cpu": "a number of CPUs", "memory": MEMORY}
_UNITS: Final = {"Ti": 2**40, "Gi": 2**30, "Mi": 2**20, "Ki": 2**10}


def spawner_bytes(size: object) -> int | None:
    """Bytes that KubeSpawner means by `size`: a number, or text with K, M, G, T (Gi too).

    None: no such size.
    """
    try:
        count = parse_hub_bytes(size.strip().removesuffix("i") if isinstance(size, str) else size)
    except ValueError:
        return None
    return count if 0 < count <= _MAX_BYTES else None


def spawner_memory(size: object) -> str | None:
    """`spawner_bytes` as a Kubernetes quantity."""
    size_bytes = spawner_bytes(size)
    return None if size_bytes is None else memory_quantity(size_bytes)


def memory_quantity(size_bytes: int) -> str:
    """`size_bytes` in the largest binary unit that divides it: 1073741824 -> "1Gi"."""
    for suffix, unit in _UNITS.items():
        if size_bytes % unit == 0:
            return f"{size_bytes // unit}{suffix}"
    return str(size_bytes)


def cpu_quantity(cpus: object) -> str | None:
    """CPUs as a Kubernetes quantity in thousandths, rounded up: 0.05 -> "50m".

    None: no number above zero.
    """
    amount = cpus if isinstance(cpus, Fraction) else quantity(cpus)
    if amount is None or not 0 < amount <= _MAX_CPUS:
        return None
    millis = math.ceil(amount * 1000)
    return str(millis // 1000) if millis % 1000 == 0 else f"{millis}m"


def user_size(resource: str, size: object) -> str | None:
    """A user's size as a Kubernetes quantity. resource: a key of SIZE_EXPECTED.

    None: no such size.
    """
    return cpu_quantity(size) if resource == "cpu" else spawner_memory(size)


def quantity(amount: object) -> Fraction | None:
    """A Kubernetes quantity (text or number) in its base unit. None: not a quantity."""
    try:
        return parse_quantity(amount)
    except ValueError:
        return None


def is_less(amount: object, other: object) -> bool:
    """Whether one quantity is less than another; what is no quantity counts as 0."""
    return (quantity(amount) or 0) < (quantity(other) or 0)
