from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from generator.render.read_manifests import parse_manifests
from generator.values.sources import MAX_FILE_BYTES
from tests.recorded_data import rows
from tests.unit.commands.running import Runner
from tools.root import ROOT


@pytest.fixture
def roost(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(capsys)


@pytest.fixture
def values(tmp_path: Path) -> Path:
    return tmp_path / "values.yaml"


def test_faulty_values_exit_with_1_and_say_every_fault_on_stderr(
    roost: Runner, values: Path
) -> None:
    values.write_text("webhook:\n  replicas: many\nfoo: 1\n")
    done = roost("render", "-f", values)
    assert (done.code, done.out) == (1, "")
    assert done.err.count("\n") == 2
    assert f"{values}:2: webhook.replicas: " in done.err


def test_what_the_clusters_operator_creates_and_what_the_hubs_admin_does_are_apart_and_everything(
    roost: Runner, values: Path
) -> None:
    # Whatever the values say there.
    values.write_text("webhook: {certificates: {mode: certManager}}\nclusterResources: false\n")
    everything, cluster, namespace = (
        set(
            parse_manifests(roost("render", "-f", values, flag, value).out.encode(), "rendered")
            or ()
        )
        for flag, value in (
            ("--set", "clusterResources=true"),
            ("--only", "cluster"),
            ("--only", "namespace"),
        )
    )
    # What the policies narrow is in the namespace, and comes with them.
    narrowed = {identity for identity in cluster if identity[2]}
    assert {identity[3] for identity in narrowed} == {"release-name-roost-controllers-pods"}
    assert {identity[1] for identity in narrowed} == {"Role", "RoleBinding"}
    assert "MutatingWebhookConfiguration" in {identity[1] for identity in cluster}
    assert "" not in {identity[2] for identity in namespace}
    assert cluster | namespace == everything


def test_a_warning_is_said_once_when_only_the_cluster_s_objects_are_rendered(
    roost: Runner, values: Path
) -> None:
    values.write_text("webhook: {replicas: 0, certificates: {mode: certManager}}\n")
    done = roost("render", "-f", values, "--only", "cluster")
    assert done.code == 0
    assert done.err.count("with 0 replicas nothing answers") == 1


def test_warnings_of_either_pass_are_said_when_only_the_cluster_s_objects_are_rendered(
    roost: Runner, values: Path
) -> None:
    values.write_text(
        "webhook: {replicas: 0, certificates: {mode: certManager}}\nrecorder: {enabled: true}\n"
    )
    done = roost("render", "-f", values, "--only", "cluster")
    assert done.code == 0
    for warning in (
        "with 0 replicas nothing answers",
        "let the controllers patch nodes",
        "the recorder records nothing",
    ):
        assert done.err.count(warning) == 1
    # These are of the namespace's part, and name its setting.
    assert "--set clusterResources=true" not in done.err


def test_the_cluster_s_objects_are_rendered_from_stdin_as_from_a_file(
    roost: Runner, values: Path
) -> None:
    # Stdin gives its text only once. Without these values, the namespace's part is refused.
    text = "webhook: {certificates: {mode: certManager}}\nrecorder: {enabled: true}\n"
    values.write_text(text)
    command = [sys.executable, "-m", "roost", "render", "-f", "-", "--only", "cluster"]
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stdout.decode()) == (
        0,
        roost("render", "-f", values, "--only", "cluster").out,
    )


@pytest.mark.parametrize("arguments", rows("commands/wrong-usage"))
def test_wrong_usage_exits_with_2_and_says_why(arguments: str, roost: Runner) -> None:
    done = roost(*arguments.split())
    assert (done.code, done.out) == (2, "")
    assert done.err.strip()


def test_endless_input_is_refused(roost: Runner, values: Path) -> None:
    values.write_bytes(b"#" * (MAX_FILE_BYTES + 10))
    done = roost("render", "-f", values)
    assert done.code == 1
    assert "a larger file" in done.err


def test_help_and_version_are_answered(roost: Runner) -> None:
    assert "render" in roost("--help").out
    assert roost("--version").out.strip()[0].isdigit()


def test_validate_prints_faults_and_warnings_and_judges_by_faults(
    roost: Runner, values: Path
) -> None:
    values.write_text("imageGate: {mode: prefer}\n")
    warned = roost("validate", "-f", values)
    assert warned.code == 0
    assert "warning: imageGate.mode: " in warned.out
    assert warned.err == f"0 errors, 1 warning in {values}\n"
    assert roost("validate", "-f", values, "--strict").code == 1
    assert roost("validate").err == "no faults in the chart's own values: give yours with -f FILE\n"
    values.write_text("a: 1\na: 2\n")
    broken = roost("validate", "-f", values)
    assert (broken.code, broken.err) == (1, f"1 error, 0 warnings in {values}\n")


def test_a_faulty_key_hides_no_warning_about_others(roost: Runner, values: Path) -> None:
    values.write_text(
        "corePods: {hostNetwork: true}\nscheduler: {port: 8443}\nwebhook: {port: 8443}\n"
        'controllers: {hostNetwork: "yes"}\n'
    )
    found = roost("validate", "-f", values)
    assert "controllers.hostNetwork: found" in found.out + found.err
    assert "warning: webhook.port: scheduler.port is 8443 too" in found.out
    assert "1 error, 2 warnings" in found.err


def test_validate_says_what_given_quotas_refuse_and_names_one_that_is_none(
    roost: Runner, tmp_path: Path
) -> None:
    file = tmp_path / "small.yaml"
    body = (
        "{apiVersion: v1, kind: LimitRange, metadata: {name: small}, spec: {limits: [{type:"
        " Container, max: MAX}]}}"
    )
    file.write_text(body.replace("MAX", "{memory: 1Mi}"))
    for given in (file, tmp_path):
        done = roost("validate", "--namespace", "jhub", "--quotas", given)
        assert (
            done.code,
            done.out.count(f"{given}: LimitRange jhub/small refuses pods of StatefulSet"),
        ) == (1, 1)
    hub = tmp_path / "hub.txt"
    hub.write_text("scheduling: {userPlaceholder: {replicas: 3}}\n")
    done = roost("import", hub, "--namespace", "jhub", "--quotas", file)
    assert (
        done.code,
        f"{file}: LimitRange jhub/small refuses pods of StatefulSet" in done.err,
    ) == (0, True)
    for bound in ("{memory: lots}", "[1]", "7"):
        file.write_text(body.replace("MAX", bound))
        done = roost("validate", "--quotas", file)
        assert (done.code, done.err.startswith(f"{file}: LimitRange small: found ")) == (2, True)
    for amounts in (
        "spec: {hard: {pods: lots}}",
        "spec: {hard: {pods: '1'}}, status: {used: {pods: [1]}}",
    ):
        file.write_text(
            f"{{apiVersion: v1, kind: ResourceQuota, metadata: {{name: small}}, {amounts}}}"
        )
        done = roost("validate", "--quotas", file)
        assert (done.code, done.err.startswith(f"{file}: ResourceQuota small: found ")) == (2, True)


def test_validate_says_faults_as_forges_read_them(
    roost: Runner, values: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values.write_text("a,b: 1\nimageGate: {mode: prefer}\n")
    (tmp_path / "below").mkdir()
    # Forges know files from the repository's top, wherever the job runs.
    monkeypatch.chdir(tmp_path / "below")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    arguments = ("validate", "-f", "../values.yaml", "--set", "webhook.replicas=9 %", "--format")
    lines = roost(*arguments, "github").out.splitlines()
    assert lines[0].startswith("::error title=webhook.replicas::--set webhook.replicas=9 %25: ")
    assert lines[1].startswith(
        '::error file=values.yaml,line=1,title=["a%2Cb"]::../values.yaml:1: '
    )
    assert lines[2].startswith("::warning file=values.yaml,line=2,title=imageGate.mode::")


def test_validate_hints_at_what_works_and_fails_for_it_under_no_option(
    roost: Runner, values: Path
) -> None:
    values.write_text("singleuser: {image: {name: a/b}}\n")
    hinted = roost("validate", "-f", values, "--strict")
    assert (hinted.code, hinted.err) == (0, f"no faults in {values}\n")
    assert "hint: singleuser.networkTools.image.name isn't set: if " in hinted.out
    assert "hint: " not in roost("render", "-f", values).err


def test_validate_says_the_faults_of_every_file_whatever_is_wrong_with_the_others(
    roost: Runner, tmp_path: Path
) -> None:
    faulty, broken, absent = (
        tmp_path / "faulty.yaml",
        tmp_path / "broken.yaml",
        tmp_path / "absent.yaml",
    )
    faulty.write_text("webhook: {replicas: many}\n")
    broken.write_text("a: 1\na: 2\n")
    done = roost("validate", "-f", faulty, "-f", broken)
    assert (done.code, done.err) == (1, f"2 errors, 0 warnings in {faulty}, {broken}\n")
    done = roost("validate", "-f", absent, "-f", faulty)
    assert (done.code, done.out.count("webhook.replicas")) == (2, 1)
    assert f"{absent}: can't be read" in done.err


def test_diff_exits_as_diff_does(roost: Runner, tmp_path: Path) -> None:
    before, after, broken = (tmp_path / f"{name}.yaml" for name in ("before", "after", "broken"))
    for path, text in (
        (before, ""),
        (after, "webhook: {replicas: 3}"),
        (broken, "webhook: {replicas: many}"),
    ):
        path.write_text(text)
    assert roost("diff", before, before).code == 0
    changed = roost("diff", before, after)
    assert changed.code == 1
    assert "~ Deployment default/release-name-roost-webhook" in changed.out
    assert roost("diff", before, broken).code == 2


def test_diff_reads_pipes_once(roost: Runner, tmp_path: Path) -> None:
    default, pipe = tmp_path / "default.yaml", tmp_path / "pipe"
    default.write_text("")
    os.mkfifo(pipe)
    for text, code in (("webhook: {replicas: 3}", 1), (roost("render").out, 0), ("", 0)):
        # From a file: manifests are larger than what a pipe holds before somebody reads.
        (tmp_path / "text").write_text(text)
        with subprocess.Popen(["/bin/sh", "-c", 'cat "$1" > "$0"', pipe, tmp_path / "text"]):
            done = roost("diff", pipe, default)
        assert (done.code, "~ Deployment" in done.out) == (code, code == 1)


@pytest.mark.parametrize(
    ("text", "code"), [("webhook: {replicas: 3}", 1), (None, 0)], ids=["values", "manifests"]
)
def test_diff_takes_values_and_manifests_from_stdin(
    text: str | None, code: int, roost: Runner, tmp_path: Path
) -> None:
    (tmp_path / "default.yaml").write_text("")
    given = (text if text is not None else roost("render").out).encode()
    command = [sys.executable, "-m", "roost", "diff", "-", str(tmp_path / "default.yaml")]
    done = subprocess.run(command, input=given, capture_output=True, check=False, cwd=ROOT)
    assert (done.returncode, b"~ Deployment" in done.stdout) == (code, code == 1), done.stderr


def test_render_says_on_stderr_what_validate_warns_of(roost: Runner, values: Path) -> None:
    values.write_text("imageGate: {mode: prefer}\nimage: {name: registry.example.org/roost}\n")
    done = roost("render", "-f", values)
    assert done.code == 0
    assert done.err == roost("validate", "-f", values).out
    assert "warning: imageGate.mode: " in done.err
    # What nobody set is in no file of the operator's.
    values.write_text("")
    assert roost("validate", "-f", values).out.startswith(
        "hint: image.name isn't set: no registry has "
    )


def test_render_checks_what_is_committed(roost: Runner, tmp_path: Path) -> None:
    out, one = tmp_path / "out", tmp_path / "one.yaml"
    rendered = roost("render", "--output-dir", out)
    assert (rendered.code, rendered.out, f"kubectl apply -k {out}" in rendered.err) == (0, "", True)
    one.write_text(f"# a comment\n{roost('render').out}")
    for place in (out, one):
        same = roost("render", "--check", place)
        assert (same.code, same.out) == (0, "")
    done = roost("render", "--check", out, "--set", "webhook.replicas=3")
    assert (done.code, "1 object differs" in done.err) == (1, True)
    assert "spec.replicas:\n      - 2\n      + 3\n" in done.out
    (deployment,) = out.glob("deployment-*webhook.yaml")
    deployment.unlink()
    gone = roost("render", "--check", out)
    assert (gone.code, gone.out.splitlines()[0][:12]) == (1, "+ Deployment")
    values = tmp_path / "values.yaml"
    values.write_text("{}")
    assert roost("diff", out, values).code == 1, "a file is missing"
    for odd in (values, tmp_path / "nowhere", tmp_path):
        assert roost("render", "--check", odd).code in (1, 2)
    assert roost("render", "--check", out, "--output-dir", out).code == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.yaml", "out", "values.yaml"]


def test_nothing_is_written_when_the_values_are_faulty(roost: Runner, tmp_path: Path) -> None:
    assert (
        roost("render", "--output-dir", tmp_path / "out", "--set", "webhook.replicas=x").code == 1
    )
    assert list(tmp_path.iterdir()) == []


def test_import_lays_later_files_over_earlier_ones(roost: Runner, tmp_path: Path) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text("singleuser: {memory: {guarantee: 2G}, cpu: {guarantee: 1}}\n")
    second.write_text("singleuser: {memory: {guarantee: 3G}}\n")
    done = roost("import", first, second)
    assert [text in done.out for text in ("guarantee: 3G", "cpu: {guarantee: 1}", "2G")] == [
        True,
        True,
        False,
    ]


def test_manifests_are_utf_8_whatever_the_locale() -> None:
    environment = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    command = [
        sys.executable,
        "-m",
        "roost",
        "render",
        "--set",
        "commonAnnotations.a=\u00e9\U0001f600",
    ]
    done = subprocess.run(command, capture_output=True, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    assert "\u00e9\U0001f600".encode() in done.stdout


def test_a_closed_pipe_is_no_error() -> None:
    script = f"set -o pipefail; {sys.executable} -m roost render | head -c 10"
    done = subprocess.run(["/bin/bash", "-c", script], capture_output=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_render_imports_nothing_slow_that_it_does_without() -> None:
    script = (
        "import sys; from roost.__main__ import main; main(['render']); print([m for m in"
        " ('kubernetes', 'flask', 'jsonschema', 'importlib.metadata') if m in sys.modules],"
        " file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stderr.strip() == "[]"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("command", [["render"], ["simulate", "--list-policies"]])
def test_a_disk_that_is_full_is_said_in_one_line(command: list[str]) -> None:
    run = [sys.executable, "-m", "roost", *command]
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(run, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    said = (
        "roost: not all could be written (No space left on device): free some room, or write"
        " elsewhere"
    )
    assert (ran.returncode, ran.stderr.splitlines()) == (1, [said])
