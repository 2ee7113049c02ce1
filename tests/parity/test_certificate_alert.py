"""When the alert on a certificate that nears its end fires."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.parity.renderers import roost_render

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("certificates", ["{}", "{mode: secret, secretName: tls}"])
def test_a_certificate_is_near_its_end_with_a_day_left(certificates: str, tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(f"{{monitoring: {{prometheusRule: {{enabled: true}}}}, webhook: {{certificates: {certificates}}}}}")
    rules = [body for body in roost_render([file]).values() if body["kind"] == "PrometheusRule"]
    (expression,) = [
        alert["expr"]
        for rule in rules
        for group in rule["spec"]["groups"]
        for alert in group["rules"]
        if alert["alert"] == "RoostCertificateNearExpiry"
    ]
    assert expression.endswith(" - time() < 86400")
