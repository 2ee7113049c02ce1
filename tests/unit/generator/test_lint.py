"""`roost validate` across keys: what can't work is refused, what surprises is warned of."""

import pytest

from generator.pipeline import report
from generator.values.release import Release
from tests.unit.generator.linted import assert_refused, assert_warned, found, merged, said


def window(**changes: str) -> str:
    """Values with one window of one set."""
    entries = {"name": "w", "timeZone": "Europe/Berlin", "start": "0 8 * * 1-5", "end": "0 18 * * 1-5", **changes}
    text = ", ".join(f'{key}: "{value}"' for key, value in entries.items())
    return f"placeholders: [{{name: a, replicas: 1, windows: [{{replicas: 9, {text}}}]}}]"


GIB_PLACEHOLDER = "{name: a, replicas: 1, resources: {requests: {memory: 1Gi}}}"
ERRORS = {
    "a time-out as long as KubeSpawner's": (
        "webhook: {timeoutSeconds: 3}",
        "KubeSpawner gives each creation of a pod 3 s",
    ),
    "two databases of the recorder": (
        "recorder: {enabled: true, extraEnv: [{name: ROOST_DATABASE, value: a}]}",
        "recorder.extraEnv[0]: ROOST_DATABASE is already set by recorder.database",
    ),
    "a volume for the recorder of no size": (
        "recorder: {enabled: true, database: {persistence: {size: 5}}}",
        "found 5, expected a size like 5Gi",
    ),
    "modes of a volume that exclude each other": (
        "recorder: {enabled: true, database: {persistence: {accessModes: [ReadWriteOnce, ReadWriteOncePod]}}}",
        "expected ReadWriteOncePod alone",
    ),
    "bounds of learning that exclude each other": (
        (
            "placeholders: [{name: a, replicas: 1, "
            "learn: {quantile: 0.9, min: 6, max: 5, bootSeconds: 300, timeZone: UTC}}]"
        ),
        "placeholders[0].learn.min: found 6, expected a number up to max, which is 5",
    ),
    "learning in a zone that nobody knows": (
        (
            "placeholders: [{name: a, replicas: 1, "
            "learn: {quantile: 0.9, min: 0, max: 5, bootSeconds: 300, timeZone: Mars/Base}}]"
        ),
        'placeholders[0].learn.timeZone: found "Mars/Base"',
    ),
    "an event in a zone that nobody knows": (
        'events: {enabled: true, booked: [{name: a, people: 9, start: "0 9 * * 2", timeZone: Mars/Base}]}',
        'events.booked[0].timeZone: found "Mars/Base"',
    ),
    "an event for more people than may be booked": (
        'events: {maxPeople: 5, booked: [{name: a, people: 9, start: "0 9 * * 2", timeZone: UTC}]}',
        "events.booked[0].people: found 9, expected a whole number from 1 to 5 (events.maxPeople)",
    ),
    "an event for a set that is not there": (
        'events: {booked: [{name: a, people: 9, start: "0 9 * * 2", timeZone: UTC, set: gpu}]}',
        'events.booked[0].set: found "gpu", expected default of placeholders',
    ),
    "the recorder in a class": (
        "recorder: {labels: {component: singleuser-server}}",
        "recorder.labels: Roost's own pods would belong to podClasses.user",
    ),
    "startup taint without controllers": (
        "imageGate: {mode: startupTaint}\ncontrollers: {enabled: false}",
        "nothing removes the taint",
    ),
    "puller above users": ("priorityClasses: {puller: 0}", "found 0, expected less than priorityClasses.user (0)"),
    "no image's name": (
        'singleuser: {profileList: [{kubespawner_override: {image: "a b"}}]}',
        'profileList: found "a b", expected an image',
    ),
    "no label": (
        'singleuser: {image: {name: a}, profileList: [{kubespawner_override: {node_selector: {"a b": x}}}]}',
        "a node's label and its value",
    ),
    "cron text": (window(start="0 8 * * 8"), "windows[0].start: found"),
    "hour of cron": (window(start="0 25 * * *"), "windows[0].start: found"),
    "date and cron": (window(start="2026-10-01T08:00"), "windows[0].end: found"),
    "no such date": (window(start="2026-02-30T08:00", end="2026-03-01T08:00"), "windows[0].start: found"),
    "end before start": (window(start="2026-10-02T08:00", end="2026-10-01T08:00"), "a later date-time than start"),
    "no such zone": (window(timeZone="Europe/Atlantis"), "a zone of the IANA database"),
    "windows of one name": (
        window().removesuffix("]}]") + ", " + window().partition("windows: [")[2],
        "windows[1].name: found",
    ),
    # Classes.
    "unknown profile": ("podClasses: {user: {profile: users}}", "a key of scheduler.profiles"),
    "unknown class joined": ("podClasses: {user: {join: {dask: 1}}}", "a key of podClasses"),
    "unknown class avoided": ("podClasses: {user: {avoid: {dask: 1}}}", "a key of podClasses"),
    "weights do not fall": ("podClasses: {build: {home: {weights: [50, 50]}}}", "less than the weight before it (50)"),
    "same labels": (
        "podClasses: {zoo: {match: {labels: {component: singleuser-server}}}}",
        "matches the same pods as podClasses.user",
    ),
    "joins and avoids itself": ("podClasses: {user: {avoid: {user: 1}}}", "joins and avoids itself"),
    "no placeholder class": ("podClasses: {placeholder: null}", "podClasses.placeholder: found"),
    "placeholders of another class": (
        (
            "podClasses: {gpu: {match: {labels: {component: user-placeholder, pool: gpu}}}}\n"
            "placeholders: [{name: a, replicas: 1, labels: {pool: gpu}, resources: {requests: {cpu: 1}}}]"
        ),
        "belong to podClasses.gpu",
    ),
    "own pods in a class": ("commonLabels: {component: singleuser-server}", "Roost's own pods would belong"),
    # Sizes, placeholders, priorities.
    "requests over limits": (
        "placeholders: [{name: a, replicas: 1, resources: {requests: {memory: 2Gi}, limits: {memory: 2G}}}]",
        "at most the limit (2G)",
    ),
    "set names twice": (
        "placeholders: [{name: a, replicas: 0}, {name: b, replicas: 0}, {name: a, replicas: 0}]",
        "placeholders[0] has it",
    ),
    "placeholders above users": ("priorityClasses: {user: -10}", "less than priorityClasses.user (-10)"),
    "guarantee that is no size": ("singleuser: {cpu: {guarantee: 1G}}", "a number"),
    # Admission.
    "fail with one replica": ("webhook: {failurePolicy: Fail, replicas: 1}", "no pod can be created"),
    "one port for two": ("webhook: {metricsPort: 8443}", "another port than webhook.port"),
    "no secret": ("webhook: {certificates: {mode: secret}}", "a value, for mode secret"),
    "no certificates": (
        "webhook: {certificates: {mode: secret, secretName: a, caBundle: aGVsbG8=}}",
        "not base64-encoded PEM",
    ),
    "cluster issuer without name": (
        "webhook: {certificates: {mode: certManager, issuerRef: {kind: ClusterIssuer}}}",
        "needs its name",
    ),
    "nobody fills the bundle": ("clusterResources: false", "nothing can write the caBundle"),
    "nobody makes the certificate": ("controllers: {enabled: false}", "the controllers create the certificate"),
    "no replica makes the certificate": ("controllers: {replicas: 0}", "self with controllers.replicas: 0"),
    "the CA's key mounted": (
        "webhook: {certificates: {secretName: hub-roost-webhook-ca}}",
        "the Secret with the CA's key, which the webhook would then mount",
    ),
    "two CAs of clients": (
        "webhook: {clientCA: {configMapName: a, secretName: b}}",
        "only one of them can hold the CA",
    ),
    "a client's name without a CA": ("webhook: {clientCA: {commonName: a}}", "the name is not checked"),
}
WARNINGS = {
    "events while they are off": (
        'events: {booked: [{name: a, people: 9, start: "0 9 * * 2", timeZone: UTC}]}',
        "events.booked: events.enabled is false",
    ),
    "events that nobody follows": (
        "events: {enabled: true}\ncontrollers: {enabled: false}",
        "events.enabled: only the controllers keep room for events",
    ),
    "events without a set": ("events: {enabled: true}\nplaceholders: []", "events.enabled: no entry of placeholders"),
    "a tenth of a byte": ("webhook: {resources: {requests: {memory: 100m}}}", "100m is not a whole number of bytes"),
    "a class's tenth of a byte": ("podClasses: {build: {resources: {memory: 100m}}}", "build.resources.memory: 100m"),
    "warm set beside a home": ("podClasses: {build: {warm: {spare: 2}}}", "the weights of both add up"),
    "warm set without nodes": (
        "{webhook: {readNodes: false}, podClasses: {user: {warm: {spare: 2}}}}",
        "does nothing while the webhook can't read nodes",
    ),
    "requests without PriorityClasses": (
        "{webhook: {readNodes: false}, podClasses: {build: {resources: {cpu: 1}}}}",
        "build.resources: does nothing while the webhook can't read PriorityClasses",
    ),
    "pair declared twice": (
        "podClasses: {user: {avoid: {placeholder: 1}}, placeholder: {avoid: {user: 1}}}",
        "are both set, and their weights add up",
    ),
    "pair outweighs joining": ("podClasses: {placeholder: {avoid: {user: 2}}}", "from 100 placeholder pods on"),
    "heavy term beside a home": (
        (
            "podClasses: {build: {preferredNodeTerms: "
            "[{weight: 50, preference: {matchExpressions: [{key: a, operator: Exists}]}}]}}"
        ),
        "outweigh a repository's first node",
    ),
    "home without requests": ("podClasses: {build: {resources: null}}", "no node ever looks full"),
    "load below the mean": ("podClasses: {build: {home: {maxLoad: 0.5}}}", "below 1 every node"),
    "gate prefers, with placeholders": ("imageGate: {mode: prefer}", "pre-emption ignores scores"),
    "gate off, with placeholders": ('imageGate: {mode: "off"}', "pre-emption ignores scores"),
    "gate without nodes": ("webhook: {readNodes: false}", "only prefers"),
    "gated placeholders": ("podClasses: {placeholder: {imageGate: true}}", "doesn't trigger a scale-up"),
    "nobody labels nodes": ("controllers: {enabled: false}", "requireLabel only prefers"),
    "no controllers' replicas": ("controllers: {replicas: 0}", "nobody labels nodes or moves placeholders"),
    "controllers without a cluster role": ("clusterResources: false", "let the controllers patch nodes"),
    "gate opens late": ("imageGate: {openAfterSeconds: 16}", "more than 30 s later than without Roost"),
    "both pull": ("imageGate: {pullerPods: zeroToJupyterHub}", "pulls the same images"),
    "puller below placeholders": ("priorityClasses: {puller: -10}", "a node full of them pulls no image"),
    "a label that is a number": (
        "singleuser: {profileList: [{kubespawner_override: {node_selector: {pool: 7}}}]}",
        "profileList[0].kubespawner_override.node_selector.pool: 7 is not a string",
    ),
    "many pullers": (
        "singleuser: {image: {name: a}, profileList: ["
        + ", ".join(f'{{kubespawner_override: {{node_selector: {{pool: "{number}"}}}}}}' for number in range(20))
        + "]}",
        "make 21 DaemonSets",
    ),
    "windows for nobody": (
        (
            "controllers: {enabled: false}\nplaceholders: [{name: a, replicas: 1, windows: "
            "[{name: w, replicas: 2, timeZone: UTC, start: '0 8 * * *', end: '0 9 * * *'}]}]"
        ),
        "placeholders[0].windows: only the controllers set the number",
    ),
    "learning for nobody": (
        (
            "controllers: {enabled: false}\nplaceholders: [{name: a, replicas: 1, "
            "learn: {quantile: 0.9, min: 0, max: 5, bootSeconds: 300, timeZone: UTC}}]"
        ),
        "placeholders[0].learn: only the controllers set the number",
    ),
    "a window that never holds": (
        (
            "placeholders: [{name: a, replicas: 1, windows: "
            "[{name: w, replicas: 2, timeZone: UTC, start: '0 8 * * 1', end: '0 8 * * *'}]}]"
        ),
        "the window is always empty",
    ),
    "placeholders of no size": ("placeholders: [{name: a, replicas: 1, resources: {}}]", "keeps nothing free"),
    "popular images for nobody": (
        "controllers: {enabled: false}\npopularImages: {enabled: true}",
        "only the controllers pull popular images",
    ),
    "no popular images": ("popularImages: {enabled: true, perNode: 0}", "no image is ever popular"),
    "popular images without users": (
        "popularImages: {enabled: true}\npodClasses: {user: null}",
        "no image is ever popular",
    ),
    "a program's limits below its requests' size": (
        "prePuller: {resources: {requests: {memory: 1}}}",
        "with which no container starts",
    ),
    "placeholder without requests": ("placeholders: [{name: a, replicas: 1, resources: {}}]", "keeps nothing free"),
    "placeholder smaller than a user": (
        (
            "singleuser: {memory: {guarantee: 1G}}\n"
            "placeholders: [{name: a, replicas: 1, resources: {requests: {memory: 1G}}}]"
        ),
        "1G is 1Gi in Kubernetes",
    ),
    "placeholder with less CPU": ("singleuser: {cpu: {guarantee: 0.5}}", "smaller than the user"),
    "below the autoscaler's cutoff": ("priorityClasses: {placeholder: -11}", "cluster-autoscaler's default cutoff"),
    "no priorities": ("priorityClasses: {enabled: false}", "never give way"),
    "no replica": ("webhook: {replicas: 0}", "nothing answers"),
    "one port of the node for two programs": (
        "webhook: {hostNetwork: true}\ncontrollers: {hostNetwork: true}",
        "controllers.metricsPort: webhook.metricsPort is 8080 too, and both are on the host network",
    ),
    "the recorder's port of the node": (
        "controllers: {hostNetwork: true}\nrecorder: {enabled: true, hostNetwork: true}",
        "recorder.metricsPort: controllers.metricsPort is 8080 too",
    ),
    "no drain": ("webhook: {pdb: {maxUnavailable: 0}}", "can be drained"),
    "a record that a restart ends": (
        "recorder: {enabled: true, database: {persistence: {enabled: false}}}",
        "recorder.database.persistence.enabled: false without an existingSecret: the history is lost",
    ),
    "a recorder without a cluster role": (
        "clusterResources: false\nrecorder: {enabled: true}",
        "the recorder records nothing",
    ),
    "unused bundle": ("webhook: {certificates: {caBundle: aGVsbG8=}}", "is not used in mode self"),
    "overridden label": ("commonLabels: {app.kubernetes.io/name: mine}", "Roost sets this label itself"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_values_that_can_not_work_are_refused_with_the_reason(case: str) -> None:
    assert_refused(*ERRORS[case])


@pytest.mark.parametrize("case", WARNINGS)
def test_values_that_surprise_are_warned_of_with_the_reason(case: str) -> None:
    assert_warned(*WARNINGS[case])


@pytest.mark.parametrize(
    "text",
    [
        "webhook: {hostNetwork: true}",
        "webhook: {hostNetwork: true}\ncontrollers: {hostNetwork: true, metricsPort: 8081}",
        "webhook: {hostNetwork: true}\nrecorder: {enabled: false, hostNetwork: true}",
        "admission: {mode: none}\nwebhook: {hostNetwork: true}\ncontrollers: {hostNetwork: true}",
        "scheduler: {target: none, hostNetwork: true, port: 8080}\nrecorder: {enabled: true, hostNetwork: true}",
    ],
)
def test_programs_that_never_meet_on_a_nodes_port_have_nothing_to_warn_of(text: str) -> None:
    assert "host network" not in said(text)


def test_a_gate_that_makes_users_wait_is_warned_of_only_where_it_requires() -> None:
    slow = "openAfterSeconds: 16"
    assert said("imageGate: {openAfterSeconds: 15}") == said("")
    for text in (f"imageGate: {{mode: prefer, {slow}}}", f"admission: {{mode: none}}\nimageGate: {{{slow}}}"):
        assert "30 s later" not in said(text)


def test_a_policy_needs_kubernetes_1_36() -> None:
    off = "podClasses: {build: {home: null}, user: {warm: null}}\nimageGate: {mode: prefer}\nplaceholders: []"
    text = f"admission: {{mode: policy}}\n{off}"
    assert "policy needs 1.36" in said(text, Release(kube_version="v1.35.9"))
    assert found(text, Release(kube_version="v1.36.0")) == []
    assert "admission policies have no ring" in said("admission: {mode: policy}")


@pytest.mark.parametrize(
    ("method", "version", "expected"),
    [
        ("auto", "v1.34.9", [("hint", "gate was set: the puller runs a small program in each image instead.")]),
        ("imageVolume", "v1.33.0", [("warning", "gate was set. Use auto or noop.")]),
        ("noop", "v1.33.0", []),
        ("auto", "v1.35.0", []),
    ],
)
def test_how_images_come_to_nodes_before_1_35_is_said(
    method: str, version: str, expected: list[tuple[str, str]]
) -> None:
    text = f"singleuser: {{image: {{name: i, tag: v1}}}}\nprePuller: {{method: {method}}}"
    faults = [fault for fault in report(merged(text), Release(kube_version=version)) if "image volumes" in str(fault)]
    assert [(fault.severity, str(fault).partition("feature ")[2]) for fault in faults] == expected


@pytest.mark.parametrize("text", ["admission: {mode: policy}", "webhook: {readNodes: false}"])
def test_a_warm_set_that_does_nothing_is_warned_of_where_somebody_chose_it(text: str) -> None:
    own = "podClasses: {user: {warm: {spare: 2}}, gpu: {match: {labels: {a: b}}, warm: {}}}"
    hits = [str(fault) for fault in found(f"{text}\n{own}") if ".warm: " in str(fault)]
    assert [hit.split(": ")[2] for hit in hits] == ["podClasses.user.warm", "podClasses.gpu.warm"]
    assert "podClasses.user.warm" not in said(text)


def test_who_keeps_nodes_from_the_webhook_hears_that_no_class_has_a_warm_set() -> None:
    off = "webhook: {readNodes: false}"
    assert "requireLabel only prefers, and no class has a warm set." in said(off)
    assert "no class has a warm set" not in said(f"{off}\npodClasses: {{user: {{warm: null}}}}")


def test_a_release_that_begins_with_a_digit_needs_another_name_for_its_service() -> None:
    assert "begin with a digit" in said("", Release(name="1hub"))
    assert found("fullnameOverride: hub", Release(name="1hub")) == []


def test_placeholders_without_any_class_get_a_fix() -> None:
    text = said("podClasses: {user: null, build: null, placeholder: null}")
    assert "found null, expected a class, which placeholders belong to. Keep the class, or set placeholders: []" in text


def test_where_certificates_come_from_elsewhere_the_bundle_is_no_worry() -> None:
    text = said("clusterResources: false\nwebhook: {certificates: {mode: certManager}}")
    assert "caBundle" not in text


def test_a_selector_of_shared_pools_stands_in_the_place_of_a_classs_own() -> None:
    own = "podClasses: {dask: {match: {labels: {x: z}, namespaceSelector: {matchLabels: {a: b}}}}}\n"
    shared = "sharedPools: {namespaceSelector: {matchLabels: {pool: users}}}\n"
    (fault,) = [one for one in found(own + shared) if "sharedPools" in str(one)]
    assert "must select the namespaces of podClasses.dask as well" in str(fault)
    for harmless in ("", "sharedPools: {namespaceSelector: {}}\n", shared.replace("pool: users", "a: b")):
        assert "sharedPools" not in said(own + harmless)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "enabled: false\nplaceholders: [{name: a, replicas: 1}, {name: a, replicas: 1}]",
        "podClasses: {user: {warm: {podsPerNode: 20, spare: -5, nodes: 10}}}",
        # What breaks ties by default contradicts nothing, and needs no class of builds.
        "podClasses: {build: {join: {build: 3, user: 1}}, user: {join: {user: 1}}}",
        "podClasses: {build: null}",
        "recorder: {enabled: true}",
        "recorder: {enabled: true, database: {existingSecret: a, persistence: {enabled: false, size: 0}}}",
        "recorder: {enabled: false, database: {persistence: {enabled: false}}}",
        # As large as the user: the hub's 1G is 1Gi in Kubernetes.
        f"singleuser: {{memory: {{guarantee: 1G}}}}\nplaceholders: [{GIB_PLACEHOLDER}]",
        "singleuser: {cpu: {guarantee: 0.05}}",
        # What is learned may be bounded to one number.
        (
            "placeholders: [{name: a, replicas: 1, resources: {requests: {memory: 1Gi}}, "
            "learn: {quantile: 0.9, min: 5, max: 5, bootSeconds: 300, timeZone: UTC}}]"
        ),
    ],
)
def test_values_that_work_have_nothing_to_warn_of(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize("replicas", [0, 1])
def test_a_set_that_never_has_pods_needs_no_priorities(replicas: int) -> None:
    window = f'{{name: w, timeZone: UTC, start: "0 8 * * 1", end: "0 9 * * 1", replicas: {replicas}}}'
    entry = f"{{name: a, replicas: 0, resources: {{requests: {{memory: 1Gi}}}}, windows: [{window}]}}"
    text = f"priorityClasses: {{enabled: false}}\nplaceholders: [{entry}]"
    assert ("placeholders rank with users" in said(text)) == bool(replicas)
