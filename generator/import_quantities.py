"""Turn zero-to-jupyterhub's sizes of users into Kubernetes quantities.

KubeSpawner reads K, M, G and T as powers of 1024, Kubernetes reads them as powers of 1000: a placeholder that copies
the text `1G` is 7 % smaller than the user it keeps a seat for, and two of them must go for one user.
Source: jupyterhub.traitlets.ByteSpecification; apimachinery's resource.Quantity.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Final

_SPAWNER_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT])?(?:i|B|iB)?")
_QUANTITY: Final = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?\d{1,3})?")
_FACTORS: Final = {
    **{suffix: Decimal(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)},
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate(("k", "M", "G", "T", "P", "E"), start=1)},
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
}
# Beyond an exbibyte or a million CPUs nothing is a real size, and Kubernetes' 64-bit quantities overflow soon after.
_MAX_BYTES: Final = 2**60
_MAX_CPUS: Final = 1_000_000


def spawner_bytes(size: object) -> int | None:
    """Bytes that KubeSpawner means by `size`: a number, or text with K, M, G, T (Gi, GB too). None: no such size."""
    if isinstance(size, bool):
        return None
    if isinstance(size, int | float):
        if not math.isfinite(size):
            return None
        number, suffix = str(size), None
    elif isinstance(size, str):
        found = _SPAWNER_SIZE.fullmatch(size.strip())
        if found is None:
            return None
        number, suffix = found.groups()
    else:
        return None
    count = int(Decimal(number) * (1024 ** ("KMGT".index(suffix) + 1) if suffix else 1))
    return count if 0 < count <= _MAX_BYTES else None


def memory_quantity(size_bytes: int) -> str:
    """`size_bytes` in the largest binary unit that divides it: 1073741824 -> "1Gi"."""
    for suffix in ("Ti", "Gi", "Mi", "Ki"):
        count, rest = divmod(size_bytes, int(_FACTORS[suffix]))
        if rest == 0:
            return f"{count}{suffix}"
    return str(size_bytes)


def cpu_quantity(cpus: object) -> str | None:
    """CPUs as a Kubernetes quantity in thousandths, rounded up: 0.05 -> "50m". None: no number above zero."""
    amount = parse_quantity(cpus)
    if amount is None or not 0 < amount <= _MAX_CPUS:
        return None
    millis = math.ceil(amount * 1000)
    return str(millis // 1000) if millis % 1000 == 0 else f"{millis}m"


def parse_quantity(quantity: object) -> Decimal | None:
    """A Kubernetes quantity (text or number) in its base unit. None: not a quantity."""
    if isinstance(quantity, bool) or not isinstance(quantity, str | int | float):
        return None
    found = _QUANTITY.fullmatch(str(quantity).strip())
    if found is None:
        return None
    number, suffix = found.groups()
    if suffix is None or suffix in _FACTORS:
        return Decimal(number) * _FACTORS.get(suffix or "", Decimal(1))
    return Decimal(f"{number}{suffix}")
