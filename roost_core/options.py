"""Declare the options of a program: each once, as a field of a dataclass.

The command line fills the field, and `tools/write_arguments.py` writes the argument that the
chart's Deployment passes.
"""

from dataclasses import field, fields
from pathlib import Path
from typing import Any, Final

import click

_PORT: Final = click.IntRange(0, 65535)
ABOVE_0: Final = click.FloatRange(0, min_open=True)


def option(spelling: str, *, chart: str = "", chart_if: str = "", **settings: Any) -> Any:  # noqa: ANN401 - click's
    """A field that the command line fills.

    spelling: as "--port". settings: click's; the field has a default unless `required` is set.
    chart: the value that the Deployment passes, as an expression of its template. Without it, the
    Deployment passes none. chart_if: the argument is passed if this expression is true; without it,
    always.
    """
    metadata = {"flag": spelling, "settings": settings, "chart": chart, "chart_if": chart_if}
    if settings.get("required"):
        return field(metadata=metadata)
    default = settings.get("default", () if settings.get("multiple") else None)
    return field(default=default, metadata=metadata)


def flag(spelling: str, **settings: Any) -> Any:  # noqa: ANN401 - as above
    """A field that is false, and true where the flag is given."""
    return option(spelling, is_flag=True, default=False, flag_value=True, **settings)


def name(spelling: str, *, metavar: str = "NAME", **settings: Any) -> Any:  # noqa: ANN401 - as above
    """A text; "": not given."""
    return option(spelling, metavar=metavar, default="", **settings)


def required(spelling: str, **settings: Any) -> Any:  # noqa: ANN401 - as above
    """A field that must be given."""
    return option(spelling, required=True, **settings)


def required_file(spelling: str, *, metavar: str = "FILE", **settings: Any) -> Any:  # noqa: ANN401 - as above
    """A path that must be given."""
    return required(spelling, metavar=metavar, type=Path, **settings)


def file(spelling: str, **settings: Any) -> Any:  # noqa: ANN401 - as above
    """A path; None: not given, or empty."""
    return option(spelling, metavar="FILE", type=_path, **settings)


def release_settings(*, reloads: bool = False) -> Any:  # noqa: ANN401 - as above
    """The release document, as the chart mounts it. reloads: whether the program follows it."""
    return required_file(
        "--settings",
        chart='"/etc/roost/release/release.json"',
        help="release.json of the rendered ConfigMap" + ("; hot-reloaded." if reloads else "."),
    )


def scheduler_configuration() -> Any:  # noqa: ANN401 - as above
    """The profiles of Roost's scheduler; None: the cluster's own scheduler places pods."""
    return file(
        "--scheduler-config",
        chart='"/etc/roost/scheduler/config.yaml"',
        chart_if='values.scheduler.target == "deploy"',
        help="The rendered KubeSchedulerConfiguration.",
    )


def kubeconfig() -> Any:  # noqa: ANN401 - as above
    """None: the pod's own service account."""
    return file("--kubeconfig", help="Default: the pod's own account.")


def bind_address() -> Any:  # noqa: ANN401 - as above
    """An IP address; "": every address."""
    return option("--bind-address", metavar="IP", default="", help="Default: every address.")


def port(spelling: str, default: int, **settings: Any) -> Any:  # noqa: ANN401 - as above
    """A port to listen at; 0: any that is free."""
    return option(spelling, type=_PORT, default=default, show_default=True, **settings)


def metrics_port(spelling: str, *, component: str) -> Any:  # noqa: ANN401 - as above
    """The port of metrics and probes. component: the key of the values that may change it."""
    return port(
        spelling,
        8080,
        chart=f"{_core_pod(component, 'metricsPort')} | int",
        help="HTTP: metrics, probes.",
    )


def log_level(*, component: str) -> Any:  # noqa: ANN401 - as above
    """How much is logged. component: as above."""
    levels = click.Choice(["Debug", "Info", "Warning", "Error"])
    return option(
        "--log-level",
        type=levels,
        default="Info",
        show_default=True,
        chart=_core_pod(component, "logLevel"),
    )


def _core_pod(component: str, key: str) -> str:
    return f"core_pod(values.corePods, values.{component}).{key}"


def parameters(kind: type) -> list[click.Parameter]:
    """What click takes for a dataclass, in the order of its fields."""
    return [
        click.Option([declared.metadata["flag"], declared.name], **declared.metadata["settings"])
        for declared in fields(kind)
    ]


def _path(text: str) -> Path | None:
    return Path(text) if text else None
