"""Lines for `hub.extraConfig`: the hub sees at once that a server runs, and soon that it answers.

KubeSpawner looks at its own copy of the pods with exponential back-off, up to 5 s apart, although a
watch updates that copy. Here it looks when the watch brings a change of the pod, and every 5 s all
the same. JupyterHub tries HTTP up to 5 s apart; here up to 1 s. Timeouts and errors stay. With
other versions nothing is changed, and the hub's log says so: docs/faster-starts.md.
"""


def _poll_faster() -> None:
    import asyncio  # noqa: PLC0415 - hub.extraConfig shares its names with other lines
    import re  # noqa: PLC0415
    from collections.abc import Callable  # noqa: PLC0415
    from functools import partial  # noqa: PLC0415
    from typing import Any  # noqa: PLC0415

    import jupyterhub  # noqa: PLC0415
    import kubespawner  # noqa: PLC0415
    from jupyterhub import utils  # noqa: PLC0415
    from kubespawner import reflector, spawner  # noqa: PLC0415
    from traitlets.log import get_logger  # noqa: PLC0415

    # What this was tested with.
    tested = {
        "KubeSpawner": (kubespawner.__version__, ("7.1.0",)),
        "JupyterHub": (jupyterhub.__version__, ("5.5.0", "6.1.1")),
    }
    for name, (found, accepted) in tested.items():
        if found not in accepted:
            get_logger().warning(
                "Faster polling isn't applied: found %s %s, tested with %s. Remove it from"
                " hub.extraConfig, or take the one for your version.",
                name,
                found,
                " and ".join(accepted),
            )
            return

    seconds_between_looks = 5.0
    seconds_between_requests = 1.0
    back_off = spawner.exponential_backoff
    list_and_update = reflector.ResourceReflector._list_and_update
    waits_for_pod = re.compile(r"pod (\S+) did not start in ")
    # NAMESPACE/POD -> who waits for a change of it.
    waiting: dict[str, set[asyncio.Future[None]]] = {}

    def wake(key: str) -> None:
        for future in list(waiting.get(key, ())):
            if not future.done():
                future.set_result(None)

    class WatchedResources(dict[str, Any]):
        """What a reflector knows; who waits for a key is woken when it changes."""

        def __setitem__(self, key: str, resource: object) -> None:
            super().__setitem__(key, resource)
            wake(key)

        def pop(self, key: str, *default: object) -> object:
            removed = super().pop(key, *default)
            wake(key)
            return removed

    async def list_and_wake(watcher: Any, resource_version: str | None = None) -> str:  # noqa: ANN401
        listed = await list_and_update(watcher, resource_version)
        watcher.resources = WatchedResources(watcher.resources)
        for key in list(waiting):
            wake(key)
        return listed

    async def wait_for_change(
        key: str, is_done: Callable[[], object], fail_message: str, timeout: float
    ) -> object:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while True:
            # Before the look, so that no change between the two is missed.
            changed = loop.create_future()
            waiting.setdefault(key, set()).add(changed)
            try:
                done = is_done()
                if done:
                    return done
                remaining = deadline - loop.time()
                if remaining <= 0:
                    raise TimeoutError(fail_message)
                await asyncio.wait([changed], timeout=min(remaining, seconds_between_looks))
            finally:
                waiting[key].discard(changed)
                if not waiting[key]:
                    del waiting[key]

    async def wait(
        pass_func: Callable[[], object], fail_message: str, *positional: object, **named: float
    ) -> object:
        pod = waits_for_pod.match(fail_message)
        if pod is None or positional or set(named) != {"timeout"}:
            return await back_off(pass_func, fail_message, *positional, **named)
        return await wait_for_change(pod[1], pass_func, fail_message, named["timeout"])

    reflector.ResourceReflector._list_and_update = list_and_wake
    spawner.exponential_backoff = wait
    utils.exponential_backoff = partial(
        utils.exponential_backoff, max_wait=seconds_between_requests
    )


_poll_faster()
