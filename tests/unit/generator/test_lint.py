"""`roost validate` across keys: what can't work is refused, what surprises is warned of."""

import pytest

from generator.pipeline import report
from generator.values.release import Release
from tests.unit.generator.linted import assert_refused, assert_warned, found, merged, said, table

ERRORS = table("""
webhook: {timeoutSeconds: 3} => KubeSpawner gives each creation of a pod 3 s
recorder: {enabled: true, extraEnv: [{name: ROOST_DATABASE, value: a}]}
  => recorder.extraEnv[0]: ROOST_DATABASE is already set by recorder.database
recorder: {enabled: true, database: {persistence: {size: 5}}} => found 5, expected a size like 5Gi
recorder: {enabled: true, database: {persistence: {accessModes: [ReadWriteOnce, ReadWriteOncePod]}}}
  => expected ReadWriteOncePod alone
placeholders: [{name: a, replicas: 1, learn: {quantile: 0.9, min: 6, max: 5, timeZone: UTC}}]
  => placeholders[0].learn.min: found 6, expected a number up to max, which is 5
placeholders: [{name: a, replicas: 1, learn: {quantile: 0.9, min: 0, max: 5, timeZone: Mars/Base}}]
  => placeholders[0].learn.timeZone: found "Mars/Base"
events: {enabled: true, booked: [{name: a, people: 9, start: 0 9 * * 2, timeZone: Mars/Base}]}
  => events.booked[0].timeZone: found "Mars/Base"
events: {maxPeople: 5, booked: [{name: a, people: 9, start: 0 9 * * 2, timeZone: UTC}]}
  => events.booked[0].people: found 9, expected a whole number from 1 to 5 (events.maxPeople)
events: {booked: [{name: a, people: 9, start: 0 9 * * 2, timeZone: UTC, set: gpu}]}
  => events.booked[0].set: found "gpu", expected default of placeholders
recorder: {labels: {component: singleuser-server}} => recorder.labels: Roost's own pods would belong to podClasses.user
{imageGate: {mode: startupTaint}, controllers: {enabled: false}} => nothing removes the taint
priorityClasses: {puller: 0} => found 0, expected less than priorityClasses.user (0)
singleuser: {profileList: [{kubespawner_override: {image: "a b"}}]} => profileList[0]: found "a b", expected an image
singleuser: {image: {name: a@sha256, tag: v1}} => image: found "a@sha256:v1", expected an image's name in lower case
prePuller: {extraImages: {x: {name: r.io/A, tag: "1"}}} => prePuller.extraImages.x: found "r.io/A:1"
singleuser: {initContainers: [{image: "a:-"}]} => singleuser.initContainers: found "a:-"
singleuser: {image: {name: a}, profileList: [{kubespawner_override: {node_selector: {"a b": x}}}]}
  => a node's label and its value
placeholders: [{name: a, replicas: 1, windows: [
  {replicas: 9, name: w, timeZone: UTC, start: 0 8 * * 8, end: 0 9 * * *}]}] => windows[0].start: found
placeholders: [{name: a, replicas: 1, windows: [
  {replicas: 9, name: w, timeZone: UTC, start: 2026-10-02T08:00, end: 2026-10-01T08:00}]}]
  => a later date-time than start
placeholders: [{name: a, replicas: 1, windows: [
  {replicas: 9, name: w, timeZone: Europe/Atlantis, start: 0 8 * * 1, end: 0 9 * * *}]}] => a zone of the IANA database
placeholders: [{name: a, replicas: 1, windows: [{replicas: 9, name: w, timeZone: UTC, start: 0 8 * * 1, end: 0 9 * * *},
  {replicas: 9, name: w, timeZone: UTC, start: 0 8 * * 1, end: 0 9 * * *}]}] => windows[1].name: found
podClasses: {user: {profile: users}} => a key of scheduler.profiles
podClasses: {user: {join: {dask: 1}}} => a key of podClasses
podClasses: {user: {avoid: {dask: 1}}} => a key of podClasses
podClasses: {build: {home: {weights: [50, 50]}}} => less than the weight before it (50)
podClasses: {zoo: {match: {labels: {component: singleuser-server}}}} => matches the same pods as podClasses.user
podClasses: {user: {avoid: {user: 1}}} => joins and avoids itself
podClasses: {placeholder: null} => podClasses.placeholder: found
{podClasses: {gpu: {match: {labels: {component: user-placeholder, pool: gpu}}}},
  placeholders: [{name: a, replicas: 1, labels: {pool: gpu}}]} => belong to podClasses.gpu
commonLabels: {component: singleuser-server} => Roost's own pods would belong
placeholders: [{name: a, replicas: 1, resources: {requests: {memory: 2Gi}, limits: {memory: 2G}}}]
  => at most the limit (2G)
placeholders: [{name: a, replicas: 0}, {name: b, replicas: 0}, {name: a, replicas: 0}] => placeholders[0] has it
priorityClasses: {user: -10} => less than priorityClasses.user (-10)
singleuser: {cpu: {guarantee: 1G}} => a number
webhook: {failurePolicy: Fail, replicas: 1} => no pod can be created
webhook: {metricsPort: 8443} => another port than webhook.port
webhook: {certificates: {mode: secret}} => a value, for mode secret
webhook: {certificates: {mode: secret, secretName: a, caBundle: aGVsbG8=}} => not base64-encoded PEM
webhook: {certificates: {mode: certManager, issuerRef: {kind: ClusterIssuer}}} => needs its name
clusterResources: false => nothing can write the caBundle
controllers: {enabled: false} => the controllers create the certificate
controllers: {replicas: 0} => self with controllers.replicas: 0
webhook: {certificates: {secretName: hub-roost-webhook-ca}}
  => the Secret with the CA's key, which the webhook would then mount
webhook: {clientCA: {configMapName: a, secretName: b}} => only one of them can hold the CA
webhook: {clientCA: {commonName: a}} => the name is not checked
podClasses: {user: null, build: null, placeholder: null}
  => found null, expected a class, which placeholders belong to. Keep the class, or set placeholders: []
""")
WARNINGS = table("""
events: {booked: [{name: a, people: 9, start: 0 9 * * 2, timeZone: UTC}]} => events.booked: events.enabled is false
{events: {enabled: true}, controllers: {enabled: false}} => events.enabled: only the controllers keep room for events
{events: {enabled: true}, placeholders: []} => events.enabled: no entry of placeholders
webhook: {resources: {requests: {memory: 100m}}} => 100m is not a whole number of bytes
podClasses: {build: {resources: {memory: 100m}}} => build.resources.memory: 100m
podClasses: {build: {warm: {spare: 2}}} => the weights of both add up
{webhook: {readNodes: false}, podClasses: {user: {warm: {spare: 2}}}} => does nothing while the webhook can't read nodes
{webhook: {readNodes: false}, podClasses: {build: {resources: {cpu: 1}}}}
  => build.resources: does nothing while the webhook can't read PriorityClasses
podClasses: {user: {avoid: {placeholder: 1}}, placeholder: {avoid: {user: 1}}}
  => are both set, and their weights add up
podClasses: {placeholder: {avoid: {user: 2}}} => from 100 placeholder pods on
podClasses: {build: {preferredNodeTerms: [{weight: 50, preference: {matchExpressions: [{key: a, operator: Exists}]}}]}}
  => outweigh a repository's first node
podClasses: {build: {resources: null}} => no node ever looks full
podClasses: {build: {home: {maxLoad: 0.5}}} => below 1 every node
imageGate: {mode: prefer} => pre-emption ignores scores
imageGate: {mode: "off"} => pre-emption ignores scores
webhook: {readNodes: false} => requireLabel only prefers, and no class has a warm set.
podClasses: {placeholder: {imageGate: true}} => doesn't trigger a scale-up
controllers: {enabled: false} => requireLabel only prefers
controllers: {replicas: 0} => nobody labels nodes or moves placeholders
clusterResources: false => let the controllers patch nodes
imageGate: {openAfterSeconds: 16} => more than 30 s later than without Roost
imageGate: {pullerPods: zeroToJupyterHub} => pulls the same images
priorityClasses: {puller: -10} => a node full of them pulls no image
singleuser: {profileList: [{kubespawner_override: {node_selector: {pool: 7}}}]}
  => profileList[0].kubespawner_override.node_selector.pool: 7 is not a string
{controllers: {enabled: false}, placeholders: [{name: a, replicas: 1, windows: [
  {name: w, replicas: 2, timeZone: UTC, start: 0 8 * * *, end: 0 9 * * *}]}]}
  => placeholders[0].windows: only the controllers set the number
{controllers: {enabled: false}, placeholders: [
  {name: a, replicas: 1, learn: {quantile: 0.9, min: 0, max: 5, timeZone: UTC}}]}
  => placeholders[0].learn: only the controllers set the number
placeholders: [{name: a, replicas: 1, windows: [
  {name: w, replicas: 2, timeZone: UTC, start: 0 8 * * 1, end: 0 8 * * *}]}] => the window is always empty
placeholders: [{name: a, replicas: 1, resources: {}}] => keeps nothing free
{controllers: {enabled: false}, popularImages: {enabled: true}} => only the controllers pull popular images
popularImages: {enabled: true, perNode: 0} => no image is ever popular
{popularImages: {enabled: true}, podClasses: {user: null}} => no image is ever popular
prePuller: {resources: {requests: {memory: 1}}} => with which no container starts
{singleuser: {memory: {guarantee: 1G}}, placeholders: [{name: a, replicas: 1, resources: {requests: {memory: 1G}}}]}
  => 1G is 1Gi in Kubernetes
singleuser: {cpu: {guarantee: 0.5}} => smaller than the user
{singleuser: {profileList: [{}, {default: true, profile_options: {a: {choices: {x: {kubespawner_override: {}},
  y: {default: true, kubespawner_override: {mem_guarantee: 9G, node_selector: {p: u}}}}}}}]},
  placeholders: [{name: a, replicas: 1, nodeSelector: {p: u}, resources: {requests: {memory: 1Gi}}}]}
  => (1Gi) is smaller than the user it is kept for (9G)
priorityClasses: {placeholder: -11} => cluster-autoscaler's default cutoff
priorityClasses: {enabled: false} => never give way
{priorityClasses: {enabled: false}, placeholders: [{name: a, replicas: 0, windows: [
  {name: w, timeZone: UTC, start: 0 8 * * 1, end: 0 9 * * 1, replicas: 1}]}]} => placeholders rank with users
{sharedPools: {namespaceSelector: {matchLabels: {pool: users}}}, podClasses: {dask: {match: {labels: {x: z},
  namespaceSelector: {matchLabels: {a: b}}}}}} => must select the namespaces of podClasses.dask as well
webhook: {replicas: 0} => nothing answers
{webhook: {hostNetwork: true}, controllers: {hostNetwork: true}}
  => controllers.metricsPort: webhook.metricsPort is 8080 too, and both are on the host network
{controllers: {hostNetwork: true}, recorder: {enabled: true, hostNetwork: true}}
  => recorder.metricsPort: controllers.metricsPort is 8080 too
corePods: {hostNetwork: true} => scheduler.hostNetwork: the webhook can't tell if the scheduler that leads has
webhook: {pdb: {maxUnavailable: 0}} => can be drained
recorder: {enabled: true, database: {persistence: {enabled: false}}}
  => recorder.database.persistence.enabled: false without an existingSecret: the history is lost
{clusterResources: false, recorder: {enabled: true}} => the recorder records nothing
webhook: {certificates: {caBundle: aGVsbG8=}} => is not used in mode self
commonLabels: {app.kubernetes.io/name: mine} => Roost sets this label itself
""")
POOLS = ", ".join(f'{{kubespawner_override: {{node_selector: {{pool: "{number}"}}}}}}' for number in range(20))


@pytest.mark.parametrize(("text", "reason"), ERRORS)
def test_values_that_can_not_work_are_refused_with_the_reason(text: str, reason: str) -> None:
    assert_refused(text, reason)


@pytest.mark.parametrize(
    ("text", "reason"),
    [*WARNINGS, (f"singleuser: {{image: {{name: a}}, profileList: [{POOLS}]}}", "make 21 DaemonSets")],
)
def test_values_that_surprise_are_warned_of_with_the_reason(text: str, reason: str) -> None:
    assert_warned(text, reason)


# Values beside which something is not said: programs that never meet on a nodes' port, a gate that makes nobody wait.
UNSAID = table("""
webhook: {hostNetwork: true} => host network
{webhook: {hostNetwork: true}, controllers: {hostNetwork: true, metricsPort: 8081}} => host network
{webhook: {hostNetwork: true}, recorder: {enabled: false, hostNetwork: true}} => host network
{admission: {mode: none}, webhook: {hostNetwork: true}, controllers: {hostNetwork: true}} => host network
{scheduler: {target: none, hostNetwork: true, port: 8080}, recorder: {enabled: true, hostNetwork: true}} => host network
imageGate: {openAfterSeconds: 15} => 30 s later
imageGate: {mode: prefer, openAfterSeconds: 16} => 30 s later
{admission: {mode: none}, imageGate: {openAfterSeconds: 16}} => 30 s later
admission: {mode: policy} => podClasses.user.warm
webhook: {readNodes: false} => podClasses.user.warm
{webhook: {readNodes: false}, podClasses: {user: {warm: null}}} => no class has a warm set
{clusterResources: false, webhook: {certificates: {mode: certManager}}} => caBundle
podClasses: {dask: {match: {labels: {x: z}, namespaceSelector: {matchLabels: {a: b}}}}} => sharedPools
{sharedPools: {namespaceSelector: {}}, podClasses: {dask: {match: {labels: {x: z},
  namespaceSelector: {matchLabels: {a: b}}}}}} => sharedPools
{sharedPools: {namespaceSelector: {matchLabels: {a: b}}}, podClasses: {dask: {match: {labels: {x: z},
  namespaceSelector: {matchLabels: {a: b}}}}}} => sharedPools
{priorityClasses: {enabled: false}, placeholders: [{name: a, replicas: 0, windows: [
  {name: w, timeZone: UTC, start: 0 8 * * 1, end: 0 9 * * 1, replicas: 0}]}]} => placeholders rank with users
""")


@pytest.mark.parametrize(("text", "reason"), UNSAID)
def test_what_is_no_worry_is_not_said(text: str, reason: str) -> None:
    assert reason not in said(text)


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
    hits = [fault.key for fault in found(f"{text}\n{own}") if fault.key.endswith(".warm")]
    assert hits == ["podClasses.user.warm", "podClasses.gpu.warm"]


def test_a_release_that_begins_with_a_digit_needs_another_name_for_its_service() -> None:
    assert "begin with a digit" in said("", Release(name="1hub"))
    assert found("fullnameOverride: hub", Release(name="1hub")) == []


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
        "singleuser: {memory: {guarantee: 1G}}\nplaceholders: [{name: a, replicas: 1}]",
        "singleuser: {cpu: {guarantee: 0.05}}",
        # What is learned may be bounded to one number.
        "placeholders: [{name: a, replicas: 1, learn: {quantile: 0.9, min: 5, max: 5, timeZone: GB}}]",
    ],
)
def test_values_that_work_have_nothing_to_warn_of(text: str) -> None:
    assert found(text) == []
