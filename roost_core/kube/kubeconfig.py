"""Connect by kubeconfigs. The official client reads and refreshes all their kinds of credentials.

The client's classes for objects aren't used: turning a node into Python objects takes ten times as
long as reading its JSON.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes import config as kubernetes_config
from kubernetes.client import ApiClient, Configuration
from kubernetes.config import ConfigException

from roost_core.kube.client import RETRIES, Client, unusable

# Its functions carry no types.
_config: Final[Any] = kubernetes_config
_client: Final[Any] = ApiClient
_FIX: Final = "Give a kubeconfig that `kubectl get nodes` works with."


def connect_by_files(
    files: str, context: str | None, on_request: Callable[[str], None] = lambda _verb: None
) -> Client:
    """Connect by kubeconfigs. Raises ClusterError.

    files: paths, separated as in PATH. If several files name the same thing, the first decides.
    context: None: the current context. on_request: called with the verb of each request.
    """
    # The client's default configuration is global and mutable, so it isn't used.
    configuration: Any = Configuration()
    configuration.retries = RETRIES
    try:
        chosen = context or _first_context(files)
        _config.load_kube_config(
            config_file=files, context=chosen, client_configuration=configuration
        )
        namespace = ""
        # The client raises if no file names a current context, even if `context` is given.
        with suppress(ConfigException):
            contexts, current = _config.list_kube_config_contexts(config_file=files)
            active = next((entry for entry in contexts if entry["name"] == chosen), current)
            namespace = str(active["context"].get("namespace") or "")
    except yaml.YAMLError:
        # The message of the error would quote the file, which holds tokens.
        raise unusable(f"kubeconfig {files}", ValueError("it isn't valid YAML"), _FIX) from None
    except (ConfigException, OSError, ValueError) as error:
        raise unusable(f"kubeconfig {files}", error, _FIX) from None
    except (TypeError, AttributeError, KeyError, RecursionError):
        # The client raises these for a list or a text in the place of a map, and for a thousand
        # brackets. Its messages wouldn't help.
        raise unusable(f"kubeconfig {files}", ValueError("it isn't a kubeconfig"), _FIX) from None

    def authorization() -> str:
        try:
            return str(configuration.auth_settings().get("BearerToken", {}).get("value") or "")
        except ConfigException as error:
            raise unusable(f"kubeconfig {files}", error, _FIX) from None

    client = Client(
        configuration.host,
        _client(configuration).rest_client.pool_manager,
        authorization,
        on_request,
    )
    client.namespace = namespace or client.namespace
    return client


def _first_context(files: str) -> str | None:
    """The current context of the first of several kubeconfigs that names one.

    The client would take the last. None: no file names one, or there is only one file.
    """
    if os.pathsep not in files:
        # With a single file the client takes the right context.
        return None
    for file in files.split(os.pathsep):
        path = Path(file).expanduser()
        config = yaml.safe_load(path.read_bytes()) if file and path.exists() else None
        name = config.get("current-context") if isinstance(config, dict) else None
        if isinstance(name, str) and name:
            return name
    return None
