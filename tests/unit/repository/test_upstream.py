"""Faster polling: the lines for `hub.extraConfig`, and the patches as they would go upstream.

What the lines replace is put back after each test.
"""

import asyncio
import json
import logging
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import jupyterhub
import kubespawner
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jupyterhub import utils
from kubespawner import reflector, spawner

from tools.root import ROOT

FOLDER: Final = ROOT / "docs" / "upstream"
SNIPPET: Final = FOLDER / "faster_polling.py"
KEY: Final = "jhub/jupyter-ada"
REFUSED: Final = f"pod {KEY} did not start in 60 seconds!"
PLACES: Final = (
    (reflector.ResourceReflector, "_list_and_update"),
    (spawner, "exponential_backoff"),
    (utils, "exponential_backoff"),
)


def run_snippet() -> None:
    exec(compile(SNIPPET.read_text(encoding="utf-8"), str(SNIPPET), "exec"), {})  # noqa: S102


def what_is_there() -> list[object]:
    return [getattr(place, name) for place, name in PLACES]


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Apply the lines; what the API server lists."""
    pods: list[dict[str, Any]] = []

    async def list_pods(**_: object) -> object:
        body = json.dumps({"items": pods, "metadata": {"resourceVersion": "1"}})

        async def read() -> str:
            return body

        return SimpleNamespace(ok=True, read=read)

    for place, name in PLACES:
        monkeypatch.setattr(place, name, getattr(place, name))
    api = SimpleNamespace(list_namespaced_pod=list_pods)
    monkeypatch.setattr(reflector, "shared_client", lambda _: api)
    run_snippet()
    return pods


def pod(phase: str = "Running", name: str = "jupyter-ada") -> dict[str, Any]:
    return {
        "metadata": {"namespace": "jhub", "name": name, "resourceVersion": "1"},
        "status": {
            "phase": phase,
            "podIP": "10.0.0.1",
            "containerStatuses": [{"ready": phase == "Running"}],
        },
    }


async def watched() -> Any:
    found = spawner.PodReflector(namespace="jhub")
    await found._list_and_update()
    return found


def waits(found: Any, timeout: float = 60.0) -> Any:
    """Await what `KubeSpawner._start` awaits; a task."""

    def is_running() -> bool:
        return bool(spawner.KubeSpawner.is_pod_running(None, found.pods.get(KEY)))

    return asyncio.ensure_future(spawner.exponential_backoff(is_running, REFUSED, timeout=timeout))


def test_it_is_what_kubespawner_awaits() -> None:
    """The message by which the lines find the wait, and the dictionary that the watch writes to."""
    source = Path(str(spawner.__file__)).read_text(encoding="utf-8")
    assert "f'pod {ref_key} did not start in {self.start_timeout} seconds!'" in source
    assert "timeout=self.start_timeout,\n            )\n        except TimeoutError:" in source
    watch = Path(str(reflector.__file__)).read_text(encoding="utf-8")
    assert watch.count("self.resources[ref_key] = resource") == 1
    assert watch.count("self.resources.pop(ref_key, None)") == 1
    assert watch.count("self.resources = {") == 1


@pytest.mark.usefixtures("listed")
def test_a_start_ends_as_the_watch_brings_the_change() -> None:
    async def run() -> float:
        found = await watched()
        waiting = waits(found)
        for phase in ("Pending", "Pending"):
            await asyncio.sleep(0.3)
            found.resources[KEY] = pod(phase)
            found.resources["jhub/jupyter-other"] = pod(name="jupyter-other")
        await asyncio.sleep(1.0)
        found.resources[KEY] = pod()
        began = time.monotonic()
        assert await waiting is True
        return time.monotonic() - began

    assert asyncio.run(run()) < 0.2


def test_a_new_list_ends_a_start_too(listed: list[dict[str, Any]]) -> None:
    async def run() -> None:
        found = await watched()
        waiting = waits(found)
        await asyncio.sleep(0.2)
        listed.append(pod())
        await found._list_and_update()
        await asyncio.wait_for(waiting, 0.5)
        # A watch goes on in the list that was made last.
        found.resources.pop(KEY, None)
        again = waits(found)
        await asyncio.sleep(0.1)
        found.resources[KEY] = pod()
        await asyncio.wait_for(again, 0.5)

    asyncio.run(run())


@pytest.mark.usefixtures("listed")
def test_a_start_times_out_with_kubespawners_own_words() -> None:
    async def run() -> None:
        with pytest.raises(TimeoutError, match="jupyter-ada did not start in 60 seconds!"):
            await waits(await watched(), timeout=0.3)

    asyncio.run(run())


@settings(max_examples=30, deadline=None)
@given(
    changes=st.lists(st.sampled_from(["Pending", "Running", "gone", "list", "other"]), max_size=8)
)
def test_whoever_waits_is_woken_by_whatever_brought_the_change(changes: list[str]) -> None:
    # What the API server knows: the watch may lag behind, and a list catches up.
    known: dict[str, dict[str, str]] = {}

    async def list_known(watcher: Any, _: object = None) -> str:
        watcher.resources = dict(known)
        return "1"

    async def run() -> None:
        watcher: Any = SimpleNamespace(resources={})
        await reflector.ResourceReflector._list_and_update(watcher)

        def runs() -> bool:
            return bool(watcher.resources.get(KEY, {}).get("phase") == "Running")

        waiting = asyncio.ensure_future(spawner.exponential_backoff(runs, REFUSED, timeout=60))
        await asyncio.sleep(0)
        for change in changes:
            if change == "list":
                known[KEY] = {"phase": "Running"}
                await reflector.ResourceReflector._list_and_update(watcher)
            elif change == "gone":
                watcher.resources.pop(KEY, None)
            elif change == "other":
                watcher.resources["jhub/other"] = {"phase": "Running"}
            else:
                watcher.resources[KEY] = {"phase": change}
            should_be_done = runs()
            await asyncio.sleep(0.002)
            assert waiting.done() == should_be_done
            if should_be_done:
                return
        waiting.cancel()

    with pytest.MonkeyPatch.context() as patch:
        for place, name in PLACES:
            patch.setattr(place, name, getattr(place, name))
        patch.setattr(reflector.ResourceReflector, "_list_and_update", list_known)
        run_snippet()
        asyncio.run(run())


@pytest.mark.usefixtures("listed")
def test_other_waits_of_kubespawner_go_on_as_before() -> None:
    looks: list[float] = []

    def look() -> bool:
        looks.append(time.monotonic())
        return len(looks) == 3

    async def run() -> None:
        assert await spawner.exponential_backoff(look, "Could not create pod", timeout=10)
        with pytest.raises(TimeoutError, match="Could not create PVC"):
            await spawner.exponential_backoff(
                lambda: False, "Could not create PVC", start_wait=0.01, timeout=0.1
            )

    asyncio.run(run())


@pytest.mark.usefixtures("listed")
def test_http_is_tried_a_second_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(utils.random, "uniform", lambda _, most: most)

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(utils.asyncio, "sleep", sleep)
    answers = iter([False] * 9 + [True])
    asyncio.run(utils.exponential_backoff(lambda: next(answers), "no answer", timeout=60))
    assert slept == pytest.approx([0.2, 0.4, 0.8, *[1.0] * 6])


@pytest.mark.parametrize(
    ("module", "name"), [(kubespawner, "KubeSpawner"), (jupyterhub, "JupyterHub")]
)
def test_other_versions_are_refused_by_name(
    module: Any, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "__version__", "99.0.1")
    before = what_is_there()
    with caplog.at_level(logging.WARNING):
        run_snippet()
    assert what_is_there() == before
    assert f"Faster polling isn't applied: found {name} 99.0.1, tested with" in caplog.text


def test_the_pinned_versions_are_accepted() -> None:
    text = SNIPPET.read_text(encoding="utf-8")
    pinned = (FOLDER.parents[1] / "tests/harness/hub/z2jh.txt").read_text(encoding="utf-8")
    hub = next(line for line in pinned.splitlines() if line.startswith("jupyterhub=="))
    assert f'"{hub.split()[0].partition("==")[2]}"' in text
    assert f'"{kubespawner.__version__}"' in text
    assert f'"{jupyterhub.__version__}"' in text


@pytest.mark.slow
def test_the_patch_for_kubespawner_applies_and_passes_its_own_tests(tmp_path: Path) -> None:
    shutil.copytree(Path(str(kubespawner.__file__)).parent, tmp_path / "kubespawner")
    patch = FOLDER / f"kubespawner-{kubespawner.__version__}.patch"
    # Without a repository around it, git apply changes nothing and says so nowhere.
    subprocess.run(["git", "init", "--quiet", "."], cwd=tmp_path, check=True)
    subprocess.run(["git", "apply", str(patch)], cwd=tmp_path, check=True)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "5 passed" in done.stdout, done.stdout + done.stderr
