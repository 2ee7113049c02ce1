"""Connect by kubeconfigs, with all their kinds of credentials, which the official client reads and
refreshes.

Its typed models stay out of the way: turning a node into Python classes takes ten times as long as
reading its JSON.
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

    files: separated as in PATH. Where several name the same thing, the first file decides.
    context: None is the current one.
    """
    # A configuration of our own: the client's default is global and mutable.
    configuration: Any = Configuration()
    configuration.retries = RETRIES
    try:
        chosen = context or _first_context(files)
        _config.load_kube_config(
            config_file=files, context=chosen, client_configuration=configuration
        )
        namespace = ""
        # The client raises here where no file names a current context, even if `context` is given.
        with suppress(ConfigException):
            contexts, current = _config.list_kube_config_contexts(config_file=files)
            active = next((context for context in contexts if context["name"] == chosen), current)
            namespace = str(active["context"].get("namespace") or "")
    except yaml.YAMLError:
        # Its message quotes the file, where tokens are.
        raise unusable(f"kubeconfig {files}", ValueError("it isn't valid YAML"), _FIX) from None
    except (ConfigException, OSError, ValueError) as error:
        raise unusable(f"kubeconfig {files}", error, _FIX) from None
    except (TypeError, AttributeError, KeyError, RecursionError):
        # What the client says where a list or a text stands for a mapping, or of a thousand
        # brackets, would help nobody.
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
    """The current context of the first of several kubeconfigs that has one; the client would take
    the last one's.
    """
    if os.pathsep not in files:
        # With a single file the client takes the right one.
        return None
    for file in files.split(os.pathsep):
        path = Path(file).expanduser()
        config = yaml.safe_load(path.read_bytes()) if file and path.exists() else None
        name = config.get("current-context") if isinstance(config, dict) else None
        if isinstance(name, str) and name:
            return name
    return None
