"""`roost doctor --pod` and `roost validate --pod`: what becomes of one pod."""

from collections.abc import Mapping
from typing import Any, Final, cast

import pytest
import yaml

from generator.faults import UsageError
from roost.__main__ import main
from roost.cli import run
from roost.commands import doctor as command
from roost.doctor.try_pod import PAUSE_SECONDS, make_pod, try_until_placed
from roost_core.kube.client import ApiError, Client, ClusterError
from roost_core.placement.labels import OPT_OUT_ANNOTATION, POLICY_REVISION_ANNOTATION
from tests.recorded_data import rows

USER: Final = {"component": "singleuser-server"}
POD_OF_USER: Final = make_pod({"metadata": {"labels": USER}})
PLACED: Final = {POLICY_REVISION_ANNOTATION: "0123"}
POD: Final = '{"metadata": {"labels": {"component": "singleuser-server"}}}'
CLAIMS: Final = POD.replace(
    "{", '{"spec": {"containers": [], "resourceClaims": [{"name": "gpu"}]}, ', 1
)


class Server:
    """An API server that answers with these annotations, or errors, one after the other; the last
    one stays.
    """

    def __init__(self, *answers: Mapping[str, str] | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.now = 0.0

    def create(self, path: str, body: dict[str, Any], /) -> dict[str, Any]:
        self.asked.append((path, body))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        if OPT_OUT_ANNOTATION in body["metadata"].get("annotations", {}):
            return {**body, "spec": {**body["spec"], "schedulerName": "default-scheduler"}}
        metadata = {**body["metadata"], "annotations": dict(answer)}
        return {
            **body,
            "metadata": metadata,
            "spec": {**body["spec"], "schedulerName": "hub.hub.user"},
        }

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def ask(self, seconds: float) -> str:
        client = cast("Client", self)
        return try_until_placed(
            client, "hub", POD_OF_USER, seconds, clock=lambda: self.now, sleep=self.sleep
        ).revision


def test_a_pod_is_made_with_dry_run_and_a_webhook_that_is_not_ready_yet_is_waited_for() -> None:
    server = Server({}, ApiError(500, "failed calling webhook"), PLACED)
    assert server.ask(60) == "0123"
    assert server.now == 2 * PAUSE_SECONDS
    assert {path for path, _ in server.asked} == {"/api/v1/namespaces/hub/pods?dryRun=All"}
    assert all(body["metadata"]["labels"] == USER for _, body in server.asked)


def test_the_wait_ends_and_what_is_forbidden_stays_so() -> None:
    server = Server({})
    assert server.ask(12) == ""
    assert len(server.asked) == 3
    for status, count in ((500, 3), (403, 1)):
        refused = Server(ApiError(status, "failed calling webhook"))
        with pytest.raises(ApiError):
            refused.ask(12)
        assert len(refused.asked) == count


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        *rows("doctor/tried-pods"),
        (ClusterError("no route to host"), 2, "no pod was tried in hub: no route to host"),
    ],
)
def test_the_command_says_what_came_back(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: Mapping[str, str] | Exception,
    code: int,
    said: str,
) -> None:
    monkeypatch.setattr(command, "connect_as_user", lambda *_: Server(answer))
    assert run(["doctor", "-n", "hub", "--pod", CLAIMS if "claims" in said else POD]) == code
    captured = capsys.readouterr()
    assert said in captured.out + captured.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--wait 0", "--wait: give --pod, too: it is how long that pod may take"),
        ("--now --wait 5", "--now: leave out --pod, --wait, --before-install and --format."),
        (f"--before-install --pod={POD}", "--pod: leave out --before-install and --format."),
        (f"--format=json --pod={POD}", "--pod: leave out --before-install and --format."),
        ("--now --hub-values h", "--hub-values: leave out --now and --pod, which read no values"),
        (
            "--values - --hub-values -",
            "--hub-values: found - for --values, too: give one of them as a file",
        ),
    ],
)
def test_options_without_effect_are_refused(
    monkeypatch: pytest.MonkeyPatch, arguments: str, said: str
) -> None:
    monkeypatch.setattr(command, "connect_as_user", pytest.fail)
    with pytest.raises(UsageError) as refused:
        run(["doctor", *arguments.split(" ", 1 if POD in arguments else -1)])
    assert str(refused.value) == said


def test_a_pod_that_exists_is_tried_as_if_it_were_new() -> None:
    metadata = {"name": "a", "uid": "1", "annotations": {**PLACED, "mine": "yes"}}
    found = make_pod(
        {"metadata": metadata, "spec": {"nodeName": "n", "containers": []}, "status": {}}
    )
    assert found["metadata"]["name"] != "a"
    assert found["metadata"]["annotations"] == {"mine": "yes"}
    assert found["spec"] == {"containers": [], "automountServiceAccountToken": False}
    assert "status" not in found


@pytest.mark.parametrize("verb", ["doctor", "validate"])
@pytest.mark.parametrize(("pod", "said"), rows("doctor/no-pods"))
def test_what_is_no_pod_is_a_wrong_usage(
    capsys: pytest.CaptureFixture[str], verb: str, pod: str, said: str
) -> None:
    assert main([verb, "--pod", pod]) == 2
    assert said in capsys.readouterr().err


def test_validate_prints_the_pod_as_it_would_be_admitted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["validate", "--release", "roost", "--namespace", "hub", "--pod", POD]) == 0
    printed = capsys.readouterr().out
    admitted = yaml.safe_load(printed)
    assert "# class: user\n" in printed
    assert admitted["spec"]["schedulerName"] == "roost.hub.user"
    assert "claims" not in printed
    assert main(["validate", "--pod", CLAIMS]) == 0
    assert "# Not looked at: its resource claims." in capsys.readouterr().out
    assert main(["validate", "--pod", "{}"]) == 0
    assert capsys.readouterr().out.startswith("# no class")
    assert main(["validate", "--set", "admission.mode=none", "--pod", POD]) == 0
    assert "no webhook" in capsys.readouterr().out
