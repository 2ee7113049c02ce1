"""Options that several commands share: the values, Helm's release, the cluster, and the fields of a
program's options.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

import click

from generator.values.merge import SetOptions
from generator.values.release_name import (
    DEFAULT_KUBE_VERSION,
    DEFAULT_NAME,
    DEFAULT_NAMESPACE,
    Release,
    check_release,
)


class RenderOptions(NamedTuple):
    """Which values, for which release."""

    files: tuple[str, ...] = ()
    settings: SetOptions = SetOptions()
    release: Release = Release()


def release_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add what Helm calls the release; `command` gets one `release`."""

    @click.option(
        "--release",
        "name",
        metavar="NAME",
        default=DEFAULT_NAME,
        show_default=True,
        help="Helm's release.",
    )
    @click.option(
        "-n",
        "--namespace",
        metavar="NAME",
        default=DEFAULT_NAMESPACE,
        show_default=True,
        help="Where it is.",
    )
    @click.option(
        "--kube-version",
        metavar="VERSION",
        default=DEFAULT_KUBE_VERSION,
        show_default=True,
        help="The cluster's version.",
    )
    @wraps(command)
    def with_release(*, name: str, namespace: str, kube_version: str, **rest: Any) -> int:  # noqa: ANN401 - click's
        release = Release(name, namespace, kube_version)
        check_release(release)
        return command(release=release, **rest)

    return with_release


def values_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options that select the values; `command` gets one `options`."""

    @click.option(
        "-f",
        "--values",
        "files",
        metavar="FILE",
        multiple=True,
        help="Values; later files win. - is stdin.",
    )
    @click.option(
        "--set",
        "values",
        metavar="KEY=VALUE",
        multiple=True,
        help="As Helm's --set, one key: a.b=c.",
    )
    @click.option(
        "--set-json",
        "jsons",
        metavar="KEY=JSON",
        multiple=True,
        help="Like --set; for lists and maps.",
    )
    @release_options
    @wraps(command)
    def with_values(
        *,
        files: tuple[str, ...],
        values: tuple[str, ...],
        jsons: tuple[str, ...],
        release: Release,
        **rest: Any,  # noqa: ANN401 - click's
    ) -> int:
        return command(options=RenderOptions(files, SetOptions(jsons, values), release), **rest)

    return with_values


def cluster_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add how to reach the cluster; `command` gets `kubeconfig` and `context`."""
    context = click.option(
        "--context", metavar="NAME", help="Of the kubeconfig. Default: its current one."
    )
    kubeconfig = click.option(
        "--kubeconfig",
        metavar="FILE",
        help="Default: $KUBECONFIG, else the pod's own account in a pod, else ~/.kube/config.",
    )
    return kubeconfig(context(command))


def program(name: str, options: type, serve: Callable[[Any], int], help_: str) -> click.Command:
    """Make the command of a long-running program.

    options: a dataclass, each of whose fields becomes an option. serve: called with an object of
    that class; returns the exit code. help_: the command's help text.
    """
    from roost_core.options import parameters  # noqa: PLC0415 - other commands needn't load dataclasses

    return click.Command(
        name,
        params=parameters(options),
        callback=lambda **given: serve(options(**given)),
        help=help_,
    )
