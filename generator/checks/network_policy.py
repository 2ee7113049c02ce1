"""Lint the peers of NetworkPolicies: addresses, and what may stand beside them."""

from __future__ import annotations

import re
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final

from generator.checks.contract import LintReport, at, listing, text
from generator.faults import Path
from generator.values.helm_release import Release

_INGRESS: Final = ("networkPolicy", "ingress")
_REJECTED: Final = "The API server rejects such a NetworkPolicy."
_CIDR: Final = "a CIDR block like 10.0.0.0/16 or fd00::/64"
# New API servers refuse what programs have read differently: 010.1.0.0/16, 10.0.0.0/08, and IPv4
# within IPv6.
_AMBIGUOUS: Final = re.compile("/0[0-9]|^::ffff:.*[.]", re.IGNORECASE)


def check(report: LintReport, _release: Release) -> None:
    """Check each peer of `networkPolicy.ingress`."""
    for key in ("webhookReviews", "metrics"):
        for place, peer in enumerate(listing(at(report.values, *_INGRESS, key))):
            with report.part():
                _lint_peer(report, (*_INGRESS, key, place), peer)


def _lint_peer(report: LintReport, path: Path, peer: object) -> None:
    block = at(peer, "ipBlock")
    if block is None:
        return
    beside = [key for key in ("podSelector", "namespaceSelector") if at(peer, key) is not None]
    if beside:
        reason = f"ipBlock can't stand beside {' and '.join(beside)} in one peer."
        report.refuse(path, reason, "Make them two peers.")
    whole = _network(report, (*path, "ipBlock", "cidr"), at(block, "cidr"))
    for place, cidr in enumerate(listing(at(block, "except"))):
        key = (*path, "ipBlock", "except", place)
        part = _network(report, key, cidr)
        if whole is not None and part is not None and not _is_within(part, whole):
            report.error(key, cidr, f"a smaller block within {whole}", _REJECTED)


def _network(report: LintReport, key: Path, cidr: object) -> IPv4Network | IPv6Network | None:
    """The addresses of a block; None after a fault."""
    written = text(cidr)
    try:
        network = None if _AMBIGUOUS.search(written) else ip_network(written, strict=False)
    except ValueError:
        network = None
    if network is None:
        report.error(key, cidr, _CIDR, _REJECTED)
    elif int(ip_address(written.partition("/")[0])) != int(network.network_address):
        reason = f"{written} is an address within {network}, and new API servers reject it."
        report.warn(key, reason, f"Write {network}.")
    return network


def _is_within(part: IPv4Network | IPv6Network, whole: IPv4Network | IPv6Network) -> bool:
    if isinstance(part, IPv4Network) and isinstance(whole, IPv4Network):
        return part != whole and part.subnet_of(whole)
    if isinstance(part, IPv6Network) and isinstance(whole, IPv6Network):
        return part != whole and part.subnet_of(whole)
    return False
