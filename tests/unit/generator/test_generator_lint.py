from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from generator.checks.lint import lint
from generator.checks.scheduler import seconds
from generator.checks.schema import find_faults
from generator.faults import ValuesError
from generator.locations import chart_folder
from generator.pipeline import check
from generator.values.loader import load
from generator.values.merge import Merged, merge_values
from generator.values.release import Release

if TYPE_CHECKING:
    from generator.faults import Fault

DEFAULTS = load((chart_folder() / "values.yaml").read_bytes(), "chart/values.yaml")


def merged(text: str) -> Merged:
    values = merge_values(DEFAULTS, [load(text.encode(), "prod.yaml")])
    assert [str(fault) for fault in find_faults(values)] == [], "the lint is for values that fit the schema"
    return values


def found(text: str, release: Release | None = None) -> list[Fault]:
    return lint(merged(text), release or Release())


def said(text: str, release: Release | None = None) -> str:
    return "\n".join(str(fault) for fault in found(text, release))


def raw(plugins: str = "{}", config: str = "[]") -> str:
    spread = "{name: PodTopologySpread, args: {defaultingType: List, defaultConstraints: []}}"
    given = f"[{spread}, {config[1:-1]}]" if config != "[]" else f"[{spread}]"
    return f"scheduler: {{profiles: {{user: {{plugins: {plugins}, pluginConfig: {given}}}}}}}"


def test_the_defaults_have_nothing_to_warn_of() -> None:
    assert found("") == []


def test_a_warm_set_of_users_is_nothing_to_warn_of() -> None:
    assert found("podClasses: {user: {warm: {podsPerNode: 20, spare: -5, nodes: 10}}}") == []


def test_a_disabled_roost_is_not_linted() -> None:
    assert found("enabled: false\nplaceholders: [{name: a, replicas: 1}, {name: a, replicas: 1}]") == []


def test_the_lint_says_file_line_key_and_reason() -> None:
    assert said("scheduler:\n  profiles:\n    user:\n      strategy: packed\n") == (
        'prod.yaml:4: scheduler.profiles.user.strategy: found "packed", expected one of imageFirst, pack, packTo, '
        "spread, sticky."
    )


def window(**changes: str) -> str:
    """Values with one window of one set."""
    entries = {"name": "w", "timeZone": "Europe/Berlin", "start": "0 8 * * 1-5", "end": "0 18 * * 1-5", **changes}
    text = ", ".join(f'{key}: "{value}"' for key, value in entries.items())
    return f"placeholders: [{{name: a, replicas: 1, windows: [{{replicas: 9, {text}}}]}}]"


ERRORS = {
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
    "the recorder in a class": (
        "recorder: {labels: {component: singleuser-server}}",
        "recorder.labels: Roost's own pods would belong to podClasses.user",
    ),
    "startup taint without controllers": (
        "imageGate: {mode: startupTaint}\ncontrollers: {enabled: false}",
        "nothing removes the taint",
    ),
    "condition without controllers": (
        "imageGate: {nodeCondition: true}\ncontrollers: {enabled: false}",
        "only the controllers write it",
    ),
    "condition without cluster objects": (
        "imageGate: {nodeCondition: true}\nclusterResources: false",
        "the right to patch nodes/status",
    ),
    "readiness rule without its condition": (
        "imageGate: {nodeReadinessRule: true}",
        "a rule waits for the node condition",
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
    # kube-scheduler would not start, or do something else than is written.
    "weight 0 means 1": (raw("{score: {enabled: [{name: ImageLocality, weight: 0}]}}"), "0 means 1"),
    "negative weight": (raw("{score: {enabled: [{name: ImageLocality, weight: -1}]}}"), "an integer from 1"),
    "weight over int32": (raw("{score: {enabled: [{name: ImageLocality, weight: 2147483648}]}}"), "an integer from 1"),
    "sum over int64": (
        raw("{multiPoint: {enabled: [{name: ImageLocality, weight: 92233720368547759}]}}"),
        "at most 9223372036854775807",
    ),
    "double entry": (
        raw("{score: {enabled: [{name: ImageLocality, weight: 1}, {name: ImageLocality, weight: 2}]}}"),
        "each plugin once",
    ),
    "configured twice": (raw("{}", "[{name: NodeAffinity}, {name: NodeAffinity}]"), "each plugin once"),
    "unknown enabled plugin": (raw("{filter: {enabled: [{name: Foo}]}}"), "a plugin of kube-scheduler"),
    "unknown weighted plugin": (
        "scheduler: {strategies: {pack: {weights: {imagelocality: 5}}}}",
        "Did you mean ImageLocality?",
    ),
    "wrong point": (raw("{score: {enabled: [{name: NodeName, weight: 1}]}}"), "extension point score"),
    "no score plugin by weight": ("scheduler: {strategies: {pack: {weights: {NodeName: 1}}}}", "extension point score"),
    "unknown point": (raw("{scores: {}}"), "an unknown key"),
    "unknown key of a point": (raw("{score: {on: []}}"), "a map with enabled and disabled"),
    "preScore off but scored": (
        raw("{preScore: {disabled: [{name: TaintToleration}]}}"),
        "TaintToleration still scores",
    ),
    "all preScore off": (raw('{preScore: {disabled: [{name: "*"}]}}'), "still score"),
    "multiPoint off": (raw('{multiPoint: {disabled: [{name: "*"}]}}'), "no queue sort plugin"),
    "no bind": (
        raw('{multiPoint: {disabled: [{name: "*"}], enabled: [{name: PrioritySort}]}}'),
        "no bind plugin",
    ),
    "queue sorts differ": (raw("{queueSort: {disabled: [{name: PrioritySort}]}}"), "one scheduler has one queue"),
    "scoringStrategy without type": (
        raw("{}", "[{name: NodeResourcesFit, args: {scoringStrategy: {resources: [{name: cpu, weight: 1}]}}}]"),
        "scoringStrategy.type: found nothing",
    ),
    "shape missing": (
        "scheduler: {strategies: {packTo: {fit: {requestedToCapacityRatio: null}}}}",
        "a shape, for this type",
    ),
    "shape with another type": (
        "scheduler: {strategies: {packTo: {fit: {type: MostAllocated}}}}",
        "nothing, for the type MostAllocated",
    ),
    "shape out of order": (
        (
            "scheduler: {strategies: {packTo: {fit: {requestedToCapacityRatio: "
            "{shape: [{utilization: 50, score: 10}, {utilization: 50, score: 1}]}}}}}"
        ),
        "in rising order",
    ),
    "resource weight 0": (
        raw(
            "{}",
            "[{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, "
            "resources: [{name: cpu, weight: 0}]}}}]",
        ),
        "0 means 1",
    ),
    "resource twice": (
        "scheduler: {strategies: {pack: {fit: {resources: [{name: cpu, weight: 1}, {name: cpu, weight: 2}]}}}}",
        "each resource once",
    ),
    "unknown argument": (raw("{}", "[{name: NodeAffinity, args: {added: 1}}]"), "an unknown argument"),
    "hard affinity weight": (
        raw("{}", "[{name: InterPodAffinity, args: {hardPodAffinityWeight: 101}}]"),
        "an integer from 0 to 100",
    ),
    "no candidate nodes": (
        raw("{}", "[{name: DefaultPreemption, args: {minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}}]"),
        "both minCandidateNodes are 0",
    ),
    "constraints without List": (
        (
            "scheduler: {profiles: {user: {pluginConfig: [{name: PodTopologySpread, args: {defaultConstraints: "
            "[{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]}}]}}}"
        ),
        "unless defaultingType is List",
    ),
    "no profile": (
        (
            "scheduler: {profiles: {user: null, build: null, placeholder: null}}\n"
            "podClasses: {user: {profile: ''}, build: {profile: ''}, placeholder: {profile: ''}}"
        ),
        "at least one",
    ),
    "profile without a strategy": ("scheduler: {profiles: {user: {strategy: null}}}", "strategy: found nothing"),
    "lease order": ("scheduler: {leaderElection: {leaseDuration: 10s}}", "more than renewDeadline (10s)"),
    "renew order": ("scheduler: {leaderElection: {retryPeriod: 9s}}", "times retryPeriod (9s)"),
    "no scheduler": ("scheduler: {replicas: 0}", "pods with a profile stay Pending"),
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
    "empty In": (
        (
            "podClasses: {user: {preferredNodeTerms: "
            "[{weight: 1, preference: {matchExpressions: [{key: a, operator: In}]}}]}}"
        ),
        "at least one value for In",
    ),
    "empty term": (
        "placeholders: [{name: a, replicas: 0, requiredNodeTerms: [{matchExpressions: []}]}]",
        "a term without any matches nothing",
    ),
    "Gt without a number": (
        (
            "placeholders: [{name: a, replicas: 0, requiredNodeTerms: "
            "[{matchExpressions: [{key: a, operator: Gt, values: [x]}]}]}]"
        ),
        "one integer in quotes",
    ),
    "toleration without a key": ("webhook: {tolerations: [{operator: Equal, value: a}]}", "Exists where key is empty"),
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


@pytest.mark.parametrize("case", ERRORS)
def test_values_that_can_not_work_are_refused_with_the_reason(case: str) -> None:
    text, reason = ERRORS[case]
    faults = found(text)
    hits = [fault for fault in faults if reason in str(fault)]
    assert hits, faults
    assert hits[0].severity == "error"
    assert hits[0].line
    with pytest.raises(ValuesError):
        check(merged(text), Release())


WARNINGS = {
    "a tenth of a byte": ("webhook: {resources: {requests: {memory: 100m}}}", "100m is not a whole number of bytes"),
    "bytes for mebibytes": ("scheduler: {resources: {requests: {memory: 64}}}", "64 is 64 bytes"),
    "a class's tenth of a byte": ("podClasses: {build: {resources: {memory: 100m}}}", "build.resources.memory: 100m"),
    "disabled unknown plugin": (raw("{score: {disabled: [{name: Foo}]}}"), "ignores it silently"),
    "configured unknown plugin": (raw("{}", "[{name: Foo, args: {a: 1}}]"), "ignores it silently"),
    "strategy disables an unknown plugin": (
        "scheduler: {strategies: {pack: {disabled: [Foo]}}}",
        "ignores it silently",
    ),
    "weight left out": (raw("{score: {enabled: [{name: TaintToleration}]}}"), "gets 1, not its default 3"),
    "weighted and disabled": ("scheduler: {strategies: {pack: {disabled: [NodeAffinity]}}}", "has a weight too"),
    "nothing scores": (raw('{score: {disabled: [{name: "*"}]}}'), "the first node that fits"),
    "default spreading": (
        "scheduler: {profiles: {user: {pluginConfig: [{name: NodeAffinity}]}}}",
        "works against packing",
    ),
    "shape with score 0": (
        (
            "scheduler: {strategies: {packTo: {fit: {requestedToCapacityRatio: "
            "{shape: [{utilization: 0, score: 10}, {utilization: 100, score: 0}]}}}}}"
        ),
        "is left out of the mean",
    ),
    "few nodes scored": ("scheduler: {percentageOfNodesToScore: 50}", "is often not scored"),
    "another scheduler's plugin": (
        "scheduler: {image: {name: quay.io/me/my-scheduler}, strategies: {pack: {weights: {Mine: 5}}}}",
        "must include it",
    ),
    "spread with join": ("scheduler: {profiles: {user: {strategy: spread}}}", "contradicts the strategy spread"),
    "dead knee": (
        "scheduler: {profiles: {user: {strategy: packTo}}, strategies: {packTo: {weights: {InterPodAffinity: 20000}}}}",
        "shape never decides",
    ),
    "home without node affinity first": (
        "scheduler: {strategies: {sticky: {weights: {NodeAffinity: 1}}}}",
        "doesn't put NodeAffinity first",
    ),
    "warm set without node affinity first": (
        (
            "scheduler: {strategies: {pack: {weights: {NodeAffinity: 100}}}}\n"
            "podClasses: {user: {warm: {podsPerNode: 0, spare: 0, nodes: 10}}}"
        ),
        "podClasses.user.warm: the strategy pack doesn't put NodeAffinity first",
    ),
    "warm set beside a home": ("podClasses: {build: {warm: {spare: 2}}}", "the weights of both add up"),
    "warm set without nodes": (
        "{webhook: {readNodes: false}, podClasses: {user: {warm: {spare: 2}}}}",
        "does nothing while the webhook can't read nodes",
    ),
    "pair declared twice": ("podClasses: {user: {avoid: {placeholder: 1}}}", "are both set, and their weights add up"),
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
    "a readiness rule for core nodes": (
        "imageGate: {nodeCondition: true, nodeReadinessRule: true}",
        "taints every new node, core nodes too",
    ),
    "gate opens late": ("imageGate: {openAfterSeconds: 16}", "more than 30 s later than without Roost"),
    "gate waits for holders": ("imageGate: {whenNoHolder: wait}", "wait for pulls"),
    "both pull": ("imageGate: {pullerPods: zeroToJupyterHub}", "pulls the same images"),
    "puller below seats": ("priorityClasses: {puller: -10}", "a node full of them pulls no image"),
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
    "nothing to move": ("placeholder: {backend: capacityBuffer}", "no placeholders to attract or move"),
    "windows for nobody": (
        (
            "controllers: {enabled: false}\nplaceholders: [{name: a, replicas: 1, windows: "
            "[{name: w, replicas: 2, timeZone: UTC, start: '0 8 * * *', end: '0 9 * * *'}]}]"
        ),
        "placeholders[0].windows: only the controllers set numbers",
    ),
    "a window that never holds": (
        (
            "placeholders: [{name: a, replicas: 1, windows: "
            "[{name: w, replicas: 2, timeZone: UTC, start: '0 8 * * 1', end: '0 8 * * *'}]}]"
        ),
        "the window never holds",
    ),
    "limits of whole nodes": (
        "placeholders: [{name: a, replicas: 1, countBy: nodes, resources: {limits: {cpu: 1}}}]",
        "not rendered for countBy: nodes",
    ),
    "whole nodes of no size": (
        "controllers: {enabled: false}\nplaceholders: [{name: a, replicas: 1, countBy: nodes, resources: {}}]",
        "keeps nothing free",
    ),
    "whole nodes of a buffer": (
        "placeholder: {backend: capacityBuffer}\nplaceholders: [{name: a, replicas: 1, countBy: nodes}]",
        "nobody sets the size of a CapacityBuffer",
    ),
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
    "seat without requests": ("placeholders: [{name: a, replicas: 1, resources: {}}]", "keeps nothing free"),
    "seat smaller than a user": (
        (
            "singleuser: {memory: {guarantee: 1G}}\n"
            "placeholders: [{name: a, replicas: 1, resources: {requests: {memory: 1G}}}]"
        ),
        "1G is 1Gi in Kubernetes",
    ),
    "seat with less CPU": ("singleuser: {cpu: {guarantee: 0.5}}", "smaller than the user"),
    "below the autoscaler's cutoff": ("priorityClasses: {placeholder: -11}", "cluster-autoscaler's default cutoff"),
    "no priorities": ("priorityClasses: {enabled: false}", "never give way"),
    "long time-out": ("webhook: {timeoutSeconds: 30}", "can take that long"),
    "no replica": ("webhook: {replicas: 0}", "nothing answers"),
    "one port of the node for two programs": (
        "webhook: {hostNetwork: true}\ncontrollers: {hostNetwork: true}",
        "controllers.metricsPort: webhook.metricsPort is 8080 too, and both are on the host network",
    ),
    "the scheduler's port of the node": (
        "scheduler: {hostNetwork: true}\nwebhook: {hostNetwork: true, port: 10259}",
        "webhook.port: scheduler.port is 10259 too",
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


@pytest.mark.parametrize("case", WARNINGS)
def test_values_that_surprise_are_warned_of_with_the_reason(case: str) -> None:
    text, reason = WARNINGS[case]
    faults = found(text)
    hits = [fault for fault in faults if reason in str(fault)]
    assert hits, faults
    assert hits[0].severity == "warning"


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


def test_a_recorder_has_nothing_to_warn_of_on_a_volume_or_with_a_secret_or_switched_off() -> None:
    assert found("recorder: {enabled: true}") == []
    assert (
        found("recorder: {enabled: true, database: {existingSecret: a, persistence: {enabled: false, size: 0}}}") == []
    )
    assert found("recorder: {enabled: false, database: {persistence: {enabled: false}}}") == []


def test_a_seat_as_large_as_the_user_in_kubernetes_units_is_fine() -> None:
    seats = "placeholders: [{name: a, replicas: 1, resources: {requests: {memory: 1Gi}}}]"
    assert found("singleuser: {memory: {guarantee: 1G}}\n" + seats) == []


def test_a_seat_as_large_as_the_user_in_decimals_is_fine() -> None:
    assert found("singleuser: {cpu: {guarantee: 0.05}}") == []


def test_a_gate_that_makes_users_wait_is_warned_of_only_where_it_requires() -> None:
    slow = "openAfterSeconds: 16, whenNoHolder: wait"
    assert said("imageGate: {openAfterSeconds: 15}") == said("")
    for text in (f"imageGate: {{mode: prefer, {slow}}}", f"admission: {{mode: none}}\nimageGate: {{{slow}}}"):
        assert "wait for pulls" not in said(text)
        assert "30 s later" not in said(text)


def test_a_policy_needs_kubernetes_1_36() -> None:
    text = "admission: {mode: policy}\npodClasses: {build: {home: null}}\nimageGate: {mode: prefer}\nplaceholders: []"
    assert "policy needs 1.36" in said(text, Release(kube_version="v1.35.9"))
    assert found(text, Release(kube_version="v1.36.0")) == []
    assert "admission policies have no ring" in said("admission: {mode: policy}")
    assert "admission policies don't know nodes" in said(
        "admission: {mode: policy}\npodClasses: {user: {warm: {spare: 1}}}"
    )


def test_a_cluster_older_than_every_known_scheduler_is_warned_of() -> None:
    assert "newer than the cluster" in said("", Release(kube_version="v1.34.0"))
    assert found("", Release(kube_version="v1.35.0")) == []
    assert found("", Release(kube_version="v1.40.0")) == []


def test_a_release_that_begins_with_a_digit_needs_another_name_for_its_service() -> None:
    assert "begin with a digit" in said("", Release(name="1hub"))
    assert found("fullnameOverride: hub", Release(name="1hub")) == []


def test_without_a_scheduler_its_values_do_not_count() -> None:
    assert found("scheduler: {target: none, replicas: 0, profiles: {user: {strategy: nope}}}") == []


def test_a_weight_table_of_kubes_own_plugins_under_any_point_is_fine() -> None:
    plugins = "{score: {disabled: [{name: ImageLocality}], enabled: [{name: NodeAffinity, weight: 5}]}, multiPoint: {}}"
    assert found(raw(plugins)) == []


@pytest.mark.parametrize(("text", "expected"), [("15s", 15), ("1m30s", 90), ("500ms", 0.5), ("1.5h", 5400), ("", 0)])
def test_go_durations_are_read_in_seconds(text: str, expected: float) -> None:
    assert seconds(text) == expected


def test_one_plugin_and_many_without_their_pre_score_are_told_apart() -> None:
    assert "TaintToleration still scores, and fails for every pod without its" in said(
        raw("{preScore: {disabled: [{name: TaintToleration}]}}")
    )
    assert "PodTopologySpread, InterPodAffinity still score, and fail for every pod without their" in said(
        raw("{preScore: {disabled: [{name: '*'}]}}")
    )


def test_node_affinity_scores_without_its_pre_score() -> None:
    assert said(raw("{preScore: {disabled: [{name: NodeAffinity}]}}")) == ""


@pytest.mark.parametrize(
    ("gates", "version", "expected"),
    [
        ('"1.36": {InterPodAffinityHostnameFastPath: true}', "v1.36.0", "It came with 1.37: give it under that minor."),
        ('"1.36": {GangScheduling: false}', "v1.37.0", 'It went with 1.37: give "1.37" an entry without it.'),
        ('"1.36": {OpportunisticBatching: true}', "v1.36.0", "the simulator"),
        ('"1.36": {SchedulerAsyncPremption: false}', "v1.36.0", "not a feature gate that Roost knows"),
    ],
)
def test_feature_gates_that_the_clusters_scheduler_would_not_take_are_said(
    gates: str, version: str, expected: str
) -> None:
    assert expected in said(f"scheduler: {{featureGates: {{{gates}}}}}", Release(kube_version=version))


def test_gates_of_other_minors_are_no_matter() -> None:
    assert said('scheduler: {featureGates: {"1.40": {Unborn: true}}}', Release(kube_version="v1.36.0")) == ""


def test_a_plugin_of_a_later_minor_or_behind_a_gate_is_said() -> None:
    topology = raw("{multiPoint: {enabled: [{name: TopologyPlacementGenerator}]}}")
    assert "it came with 1.36" in said(topology, Release(kube_version="v1.35.0"))
    deferred = raw("{multiPoint: {enabled: [{name: DeferredPodScheduling}]}}")
    assert "it came with 1.37" in said(deferred, Release(kube_version="v1.36.0"))
    gate = "InPlacePodVerticalScalingSchedulerPreemption"
    assert f"behind the feature gate {gate}, which is off" in said(deferred, Release(kube_version="v1.37.0"))
    gang = raw("{multiPoint: {enabled: [{name: GangScheduling}]}}")
    assert "behind the feature gate GangScheduling, which is off" in said(gang, Release(kube_version="v1.36.0"))
    on = "featureGates: {'1.36': {GangScheduling: true, GenericWorkload: true, "
    on += "OpportunisticBatching: false}}, "
    assert said(gang.replace("{profiles", "{" + on + "profiles"), Release(kube_version="v1.36.0")) == ""


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


def test_the_selector_of_shared_pools_is_checked() -> None:
    odd = "{matchExpressions: [{key: a, operator: In}]}"
    assert "sharedPools.namespaceSelector.matchExpressions[0].values" in said(
        f"sharedPools: {{namespaceSelector: {odd}}}"
    )
