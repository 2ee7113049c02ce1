"""Lint the peers of NetworkPolicies: addresses, and what may stand beside them."""

from __future__ import annotations

import re
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_interface
from typing import Final

from generator.checks.contract import LintReport
from generator.faults import KeyPath
from generator.values.lookups import child, listing, text
from generator.values.release_name import Release

_Network = IPv4Network | IPv6Network

_INGRESS: Final = ("networkPolicy", "ingress")
_REJECTED: Final = "The API server rejects such a NetworkPolicy."
_CIDR: Final = "a CIDR block like 10.0.0.0/16 or fd00::/64"
# The first minor with the feature gate StrictIPCIDRValidation on. Older ones only warn.
_STRICT_MINOR: Final = (1, 36)
_LEADING_ZEROS: Final = re.compile(r"(?<![0-9a-f])0+(?=[0-9a-f])", re.IGNORECASE)


def check(report: LintReport, release: Release) -> None:
    """Check each peer of `networkPolicy.ingress`."""
    for key in ("webhookReviews", "metrics"):
        for place, peer in enumerate(listing(child(report.values, *_INGRESS, key))):
            with report.part():
                _lint_peer(report, release, (*_INGRESS, key, place), peer)


def _lint_peer(report: LintReport, release: Release, path: KeyPath, peer: object) -> None:
    block = child(peer, "ipBlock")
    if block is None:
        return
    beside = [key for key in ("podSelector", "namespaceSelector") if child(peer, key) is not None]
    if beside:
        reason = f"ipBlock can't stand beside {' and '.join(beside)} in one peer."
        report.refuse(path, reason, "Make them two peers.")
    whole = _network(report, release, (*path, "ipBlock", "cidr"), child(block, "cidr"))
    for place, cidr in enumerate(listing(child(block, "except"))):
        key = (*path, "ipBlock", "except", place)
        part = _network(report, release, key, cidr)
        if whole is not None and part is not None and not _is_within(part, whole):
            report.error(key, cidr, f"a smaller block within {whole}", _REJECTED)


def _network(report: LintReport, release: Release, key: KeyPath, cidr: object) -> _Network | None:
    """The addresses of a block, as old API servers read it; None if every API server rejects it."""
    written = text(cidr)
    try:
        interface = ip_interface(_LEADING_ZEROS.sub("", written))
    except ValueError:
        report.error(key, cidr, _CIDR, _REJECTED)
        return None
    network = interface.network
    meant = _without_mapping(network)
    if _has_leading_zeros(written):
        trait = "has leading zeros, which some programs read as octal"
    elif meant != network:
        trait = "is IPv4 within IPv6, which programs read differently"
    elif interface.ip != network.network_address:
        trait = f"is an address within {network}"
    else:
        return network
    say = report.warn if release.kube_minor < _STRICT_MINOR else report.refuse
    reason = f"{written} {trait}. API servers reject it from Kubernetes 1.36 on."
    say(key, reason, f"Write {meant}.")
    return network


def _has_leading_zeros(written: str) -> bool:
    """Whether numbers have zeros that no API server takes from 1.36 on. `fd00::0001` is fine."""
    address, _, length = written.partition("/")
    try:
        ip_address(address)
    except ValueError:
        return True
    return str(int(length)) != length


def _without_mapping(network: _Network) -> _Network:
    """10.0.0.0/8 for ::ffff:10.0.0.0/104; other networks as they are."""
    mapped = network.network_address.ipv4_mapped if isinstance(network, IPv6Network) else None
    return network if mapped is None else IPv4Network((mapped, network.prefixlen - 96))


def _is_within(part: _Network, whole: _Network) -> bool:
    """Whether a block is a part of another, as API servers compare them: addresses without their
    mapping, and lengths as written.
    """
    inner = _without_mapping(part).network_address
    return part.prefixlen > whole.prefixlen and inner in _without_mapping(whole)
