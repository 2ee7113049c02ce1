"""The options of `roost webhook`; all rules come from the release document."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from roost_core import options

_CLIENT_CA: Final = "values.webhook.clientCA.secretName"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOptions:
    """`roost webhook`."""

    # A file, or the directory it is mounted in.
    release_file: Path = options.release_settings(reloads=True)
    release: str = options.required("--release", metavar="NAME", chart="release.name")
    namespace: str = options.required("--namespace", metavar="NAME", chart="release.namespace")
    no_cluster: bool = options.flag("--no-cluster", help="No API server: every fact is unknown.")
    kubeconfig: Path | None = options.kubeconfig()
    bind_address: str = options.bind_address()
    port: int = options.port(
        "--port", 8443, chart="values.webhook.port | int", help="HTTPS, for reviews."
    )
    metrics_port: int = options.metrics_port("--metrics-port", component="webhook")
    certificate_folder: Path = options.required_file(
        "--certificate-folder",
        metavar="FOLDER",
        chart='"/etc/roost/certificate"',
        help="With tls.crt and tls.key; followed.",
    )
    client_ca: Path | None = options.file(
        "--client-ca",
        chart='"/etc/roost/client-ca/ca.crt"',
        chart_if=_CLIENT_CA,
        help="Accept reviews only from clients with such a CA's certificate.",
    )
    client_name: str = options.name(
        "--client-name",
        chart="values.webhook.clientCA.commonName",
        chart_if=f"{_CLIENT_CA} and values.webhook.clientCA.commonName",
        help="And only with this common name.",
    )
    drain_seconds: float = options.option(
        "--drain-seconds",
        type=click.FloatRange(0),
        default=10.0,
        show_default=True,
        help="Serving after SIGTERM.",
    )
    log_level: str = options.log_level(component="webhook")
