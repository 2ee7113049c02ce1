"""What `roost record` is told at its start and can't use is said in a line that names its file once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from roost.cli import run
from roost_core.kube import logs
from roost_core.release.reader import SettingsError
from roost_lab.recorder.main import _profiles

if TYPE_CHECKING:
    from pathlib import Path

    from roost_core.kube.client import Client


class Server:
    """Stands in for cluster.client.Client: a cluster of version 1.36."""

    def get(self, _path: str) -> dict[str, Any]:
        return {"minor": "36+"}


SERVER = cast("Client", Server())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "found nothing, expected the kind KubeSchedulerConfiguration."),
        ("[]", "found [], expected the kind KubeSchedulerConfiguration."),
        ("kind: ConfigMap\ndata: {}", 'found "ConfigMap", expected the kind KubeSchedulerConfiguration.'),
        ("kind: [", "while parsing a flow node"),
        ("kind: KubeSchedulerConfiguration\nprofiles: 5", "expected a KubeSchedulerConfiguration."),
        ("kind: KubeSchedulerConfiguration\nprofiles: [5]", "profiles[0]: found 5, expected an object"),
    ],
)
def test_a_file_that_is_no_configuration_of_the_scheduler_is_said(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError) as caught:
        _profiles(path, SERVER)
    assert str(caught.value).startswith(f"{path}: found ")
    assert says in str(caught.value)


def test_the_clusters_default_profile_is_known_beside_those_of_the_configuration(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "kind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: hub-user}, {schedulerName: hub-build}]"
    )
    assert _profiles(path, SERVER).keys() == {"default-scheduler", "hub-user", "hub-build"}
    assert _profiles(None, SERVER).keys() == {"default-scheduler"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "found no readable file (No such file or directory), expected a JSON object.\n"),
        ("[", "found invalid JSON (JSONDecodeError), expected a JSON object.\n"),
        ("[]", "found [], expected a JSON object.\n"),
        ('{"version": 2}', "version: found 2, expected 1.\n"),
    ],
)
def test_settings_that_cannot_be_used_are_said_with_their_file_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str | None, says: str
) -> None:
    # The log's handlers are pytest's here.
    monkeypatch.setattr(logs, "configure", lambda _level: None)
    path = tmp_path / "release.json"
    if text is not None:
        path.write_text(text)
    assert run(["record", "--settings", str(path), "--database", str(tmp_path / "roost.db")]) == 1
    assert capsys.readouterr().err.startswith(f"roost record: {path}: {says}")
