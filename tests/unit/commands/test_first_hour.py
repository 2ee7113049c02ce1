"""What a new operator types first, and what must come back in place of a riddle."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from roost.cli import groups
from tests.unit.commands.running import Runner


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(capsys)


def test_a_misspelt_command_is_answered_with_the_nearest(run: Runner) -> None:
    assert "Did you mean roost import?" in run("improt").err
    assert "Did you mean roost render?" in run("rendr").err
    assert "roost --help" in run("xyzzy").err


def test_help_version_and_completion_are_commands(run: Runner) -> None:
    assert run("help").out == run("--help").out
    assert run("help", "render").out.splitlines()[0] == "Usage: roost render [OPTIONS]"
    assert run("help", "nothing").code == 2
    assert run("version").out == run("--version").out
    for shell in ("zsh", "fish"):
        assert "_ROOST_COMPLETE" in run("completion", shell).out


def test_bash_completes_commands() -> None:
    """By the script itself, in a real bash."""
    script = 'source <("$0" -m roost completion bash); complete -p roost'
    done = subprocess.run(
        ["bash", "-c", script, sys.executable], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "_roost_completion roost" in done.stdout) == (0, True), done.stderr


@pytest.mark.parametrize("command", [["render"], ["--help"], ["completion", "bash"], ["version"]])
def test_a_reader_that_ends_early_is_no_fault(command: list[str]) -> None:
    """As with `roost render | head -c 10`."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "roost", *command],
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr


def test_values_without_an_option_are_answered_with_the_option(run: Runner) -> None:
    done = run("validate", "values.yaml")
    assert (done.code, done.err) == (
        2,
        "found values.yaml without an option, expected roost validate -f values.yaml\n",
    )


@pytest.mark.parametrize(
    "text",
    [
        "hub: {}\nsingleuser: {image: {name: a/b}}\n",
        "singleuser: {memory: {guarantee: 1G}}\nscheduling: {userScheduler: {enabled: false}}\n",
        "jupyterhub:\n  singleuser: {}\n",
        "cull: {every: 60}\n",
    ],
)
@pytest.mark.parametrize("command", ["validate", "render", "images", "headroom"])
def test_a_hubs_own_values_are_named_in_place_of_many_faults(
    run: Runner, tmp_path: Path, text: str, command: str
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    done = run(command, "-f", file)
    assert done.code == 1
    faults = [line for line in (done.out + done.err).splitlines() if "expected" in line]
    assert len(faults) == 1
    assert f"roost import {file} > values.yaml" in faults[0]


def test_a_missing_file_is_no_file_without_faults(run: Runner, tmp_path: Path) -> None:
    done = run("validate", "-f", tmp_path / "nothing.yaml")
    assert (done.code, done.out) == (2, "")
    assert "no faults" not in done.err
    # What others have is told before.
    faulty = tmp_path / "faulty.yaml"
    faulty.write_text("foo: 1\n")
    done = run("validate", "-f", faulty, "-f", tmp_path / "nothing.yaml")
    assert (done.code, "1 error" in done.err, "foo" in done.out) == (2, True, True)


def test_validate_says_which_values_it_checked(run: Runner, tmp_path: Path) -> None:
    assert run("validate").err == "no faults in the chart's own values: give yours with -f FILE\n"
    file = tmp_path / "values.yaml"
    file.write_text("")
    assert run("validate", "-f", file, "--set", "webhook.replicas=3").err == (
        f"no faults in {file}, --set\n"
    )


# Every command that reads a file, without a file there.
_READING = {
    "validate": ("-f", "{missing}"),
    "render": ("-f", "{missing}"),
    "images": ("-f", "{missing}"),
    "headroom": ("-f", "{missing}"),
    "import": ("{missing}",),
    "diff": ("{missing}", "{missing}2"),
    "why": ("hub/pod", "--database", "{missing}"),
    "report": ("--database", "{missing}"),
    "view": ("--database", "{missing}", "--output", "{missing}.html"),
    "simulate": ("--trace", "{missing}"),
    "rehearse": ("--past", "{missing}", "-f", "{missing}"),
}


@pytest.mark.parametrize("command", _READING)
def test_a_file_that_is_missing_has_one_exit_code(
    run: Runner, tmp_path: Path, command: str
) -> None:
    missing = str(tmp_path / "missing")
    done = run(command, *(part.format(missing=missing) for part in _READING[command]))
    assert (done.code, "missing" in done.err) == (2, True), done.err


def test_a_cluster_that_is_not_there_has_the_same_exit_code(run: Runner, tmp_path: Path) -> None:
    done = run("doctor", "--now", "--kubeconfig", tmp_path / "missing")
    assert done.code == 2
    # It was given.
    assert "Give --kubeconfig" not in done.err


def test_every_command_has_a_help_page(run: Runner) -> None:
    for group in groups():
        for name in group.commands:
            assert run("help", name).code == 0


def test_a_summary_says_what_an_install_creates(run: Runner) -> None:
    done = run("render", "--release", "roost", "-n", "hub", "--summary")
    lines = done.out.splitlines()
    assert done.code == 0
    assert len(lines) < 25
    assert "  runs     Deployment roost-webhook: 2, each requests 0.05 CPU and 128 MiB" in lines
    assert any(
        line.startswith("  changes  new pods with component=binderhub-build or ")
        and line.endswith("without the webhook they start unchanged")
        for line in lines
    )
    assert any("roost.hub.roost-controllers may patch nodes;" in line for line in lines)
    assert lines[-1].startswith("Programs request 0.3 CPU and 768 MiB in all; placeholders 0.15")


def test_a_summary_counts_as_requested_what_only_has_a_limit(run: Runner) -> None:
    sets = '[{"name": "large", "replicas": 3, "resources": {"limits": {"memory": "40Gi"}}}]'
    done = run("render", "--release", "roost", "--summary", "--set-json", f"placeholders={sets}")
    line = "  runs     StatefulSet roost-placeholder-large: 3, each requests 0 CPU and 40 GiB"
    assert line in done.out.splitlines()


def test_a_summary_counts_each_object_of_the_manifests(run: Runner) -> None:
    objects = run("render", "--release", "roost", "-n", "hub").out.count("\nkind: ")
    heads = [
        line
        for line in run("render", "--release", "roost", "-n", "hub", "--summary").out.splitlines()
        if " objects " in line
    ]
    assert sum(int(line.split()[0]) for line in heads) == objects


def test_a_summary_of_nothing_says_so(run: Runner) -> None:
    said = "nothing: these values render no object\n"
    assert run("render", "--summary", "--set", "enabled=false").out == said
    # No empty heading where an operator renders the cluster's objects alone.
    alone = ("--only", "cluster", "--set", "webhook.certificates.mode=certManager")
    done = run("render", "--summary", "-n", "hub", *alone)
    assert (done.code, "for the whole cluster:" in done.out) == (0, True), done.err
    assert "in namespace :" not in done.out


def test_a_summary_says_where_pods_are_refused_without_the_webhook(run: Runner) -> None:
    done = run("render", "--summary", "--set", "webhook.failurePolicy=Fail")
    assert "without the webhook they are refused" in done.out


def test_node_hours_need_the_size_of_a_node(run: Runner) -> None:
    unknown = run("headroom").out
    assert "node-hours at most" not in unknown
    assert "--per-node N" in unknown
    known = run("headroom", "--per-node", 3, "--days", 1).out
    assert "24 node-hours at most (3 a node), 9.60 at 0.4 a node-hour" in known
