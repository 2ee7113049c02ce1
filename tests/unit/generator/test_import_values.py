"""What of a hub's values is kept, and as what; what is named; what is to be switched off."""

import pytest
import yaml

from generator.importing.result import ImportResult
from generator.importing.source import child
from tests.unit.generator.imported_hubs import PLAIN, PURPOSE_USER, defaults, imported, placeholder, unmapped, value
from tests.unit.generator.linted import table

REQUIRED = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
PROGRAMS = ("scheduler", "webhook", "controllers", "recorder")
# Beside keys of Roost's values (`values.`: as printed, `set.`: of the only placeholder set, with what it inherits)
# `named`: keys that aren't carried and their lines, `switch`: what to switch off, `says` and `unsaid`: words said.
CASES = table("""
{} => {values.replaceSchedulers: [hub-user-scheduler], set.replicas: 0, singleuser.memory.guarantee: 1G,
  podClasses.user.join: {user: 100}, says: [hook.enabled can stay], unsaid: [prePuller.tolerations]}
singleuser: {memory: {guarantee: null}} => {values.singleuser: null}
scheduling: {userScheduler: {enabled: null}} => {scheduler.target: none}
scheduling: {userPlaceholder: {enabled: null}} => {values.placeholders: []}
prePuller: {hook: {enabled: null}, continuous: {enabled: null}} => {imageGate.mode: "off"}
scheduling: {corePods: {nodeAffinity: {matchNodePurpose: null}, tolerations: null},
  userPods: {nodeAffinity: {matchNodePurpose: null}, tolerations: null}} => {webhook.tolerations: [],
  podClasses.user.preferredNodeTerms: [], podClasses.placeholder.preferredNodeTerms: [], set.tolerations: [],
  scheduler.affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}}
hub: {tolerations: [{key: core, operator: Exists}], config: {}} => {named: {hub.tolerations: 1}, values.webhook: null}
{imageBuilderType: dind, dind: {resources: {requests: {cpu: 1}}}}
  => {named: {dind.resources: 1}, says: ["component: image-builder"]}
{imageBuilderType: pink, pink: {resources: {requests: {cpu: 1}}}}
  => {named: {pink.resources: 1}, says: ["component: image-builder"]}
scheduling: {userScheduler: {logLevel: 4, serviceAccount: {create: true, name: null, annotations: {}},
  containerSecurityContext: {runAsNonRoot: true, capabilities: {drop: ["ALL"]}}}, podPriority: {enabled: false,
  imagePullerPriority: -5}, userPlaceholder: {containerSecurityContext: {runAsUser: 65534}, extraPodSpec: {}}}
  => {named: {}}
scheduling: {userScheduler: {replicas: "two", logLevel: 5}}
  => {scheduler.logLevel: 5, says: ["expected an integer, found a string"]}
scheduling: {userScheduler: {replicas: 50, nodeSelector: {"a b": c}, logLevel: 5}} => {scheduler.logLevel: 5,
  scheduler.replicas: 2, named: {scheduling.userScheduler.replicas: 1, scheduling.userScheduler.nodeSelector: 1}}
hub: {config: {KubeSpawner: {image: "quay.io/lab/other:1", start_timeout: 60}, MySpawner: {node_selector: {a: b}}},
  extraConfig: {first: "c.JupyterHub.log_level = 10", second: "c.KubeSpawner.modify_pod_hook = hook"}}
  => {named: {hub.config.MySpawner.node_selector: 1, hub.extraConfig.second: 1},
  singleuser.image.name: "quay.io/lab/other:1", says: [hub.extraConfig is Python]}
""")
PLACEHOLDERS = table(
    """
{scheduling: {userPlaceholder: {replicas: 2, resources: {requests: {memory: 450M}, limits: {memory: 450M}}}},
  singleuser: {memory: {guarantee: 450M}}} => {set.resources: {requests: {memory: 450Mi}, limits: {memory: 450Mi}},
  says: [memory raised from 450M to 450Mi]}
scheduling: {userPlaceholder: {replicas: 2, resources: {requests: {memory: 57350076Ki}}}}
  => {set.resources: {requests: {memory: 57350076Ki}}}
singleuser: {extraResource: {limits: {nvidia.com/gpu: "1"}}}
  => {set.resources: {requests: {memory: 1Gi, nvidia.com/gpu: "1"}, limits: {nvidia.com/gpu: "1"}}}
scheduling: {userPlaceholder: {enabled: false, replicas: 7}} => {values.placeholders: []}
scheduling: {userPlaceholder: {replicas: -3}} => {placeholders: []}
scheduling: {userPods: {nodeAffinity: {matchNodePurpose: ignore}}}
  => {podClasses.user.preferredNodeTerms: [], podClasses.placeholder.preferredNodeTerms: []}
scheduling: {userPods: {nodeAffinity: {matchNodePurpose: prefer}}}
  => {podClasses.user.preferredNodeTerms: [PREFER_USER],
  podClasses.placeholder.preferredNodeTerms: [PREFER_USER]}
scheduling: {userPods: {nodeAffinity: {matchNodePurpose: require}}}
  => {podClasses.user.preferredNodeTerms: [PREFER_USER], podClasses.placeholder.preferredNodeTerms: []}
{scheduling: {userPods: {nodeAffinity: {matchNodePurpose: require}}}, singleuser: {extraNodeAffinity: {required:
  [{matchExpressions: [{key: zone, operator: In, values: [a]}]}, {}]}}} => {says: [ORed], set.requiredNodeTerms:
  [PURPOSE_USER, {matchExpressions: [{key: zone, operator: In, values: [a]}]}]}
singleuser: {extraNodeAffinity: {preferred: [
  {weight: 60, preference: {matchExpressions: [{key: disk, operator: Exists}]}}]}}
  => {says: [weight 60], podClasses.placeholder.preferredNodeTerms: [PREFER_USER,
  {weight: 60, preference: {matchExpressions: [{key: disk, operator: Exists}]}}]}
singleuser: {extraPodAntiAffinity: {preferred: [{weight: 1}]}} => {named: {singleuser.extraPodAntiAffinity: 1}}
""".replace("PREFER_USER", "{weight: 100, preference: PURPOSE_USER}").replace("PURPOSE_USER", str(PURPOSE_USER))
)
PULLERS = table("""
prePuller: {hook: {enabled: false}, continuous: {enabled: false}} => {imageGate.mode: "off", prePuller.enabled: false}
prePuller: {hook: {enabled: false}} => {values.imageGate: null}
prePuller: {continuous: {enabled: false}} => {unsaid: ["continuous.enabled: false"]}
prePuller: {extraImages: {side: {name: quay.io/a/b, tag: v1, pullPolicy: Always}}}
  => {prePuller.extraImages: {side: {name: quay.io/a/b, tag: v1}}}
{singleuser: {nodeSelector: {pool: users}, extraTolerations: [{key: gpu, operator: Exists}]},
  prePuller: {labels: {a: b},
  extraTolerations: [{key: puller, operator: Exists}], resources: {requests: {memory: 8Mi}, limits: {cpu: 1}}}}
  => {singleuser.nodeSelector: {pool: users}, singleuser.extraTolerations: [{key: gpu, operator: Exists}],
  prePuller.resources: {requests: {cpu: "0", memory: 8Mi}, limits: {cpu: "1"}}, prePuller.labels: {a: b}}
{singleuser: {image: {name: a/b, tag: '1'}}, prePuller: {continuous: {enabled: false}}} => {prePuller.enabled: false,
  imageGate.mode: prefer, imageGate.pullerPods: zeroToJupyterHub, unsaid: ["continuous.enabled: false"]}
singleuser: {networkTools: {image: {name: tools, tag: '1'}}} => {singleuser.networkTools.image.name: tools}
singleuser: {networkTools: {image: {name: tools, tag: '1'}}, cloudMetadata: {blockWithIptables: false}}
  => {singleuser.networkTools.image.name: "", unsaid: [networkTools]}
singleuser: {networkTools: {image: {name: tools, tag: '1'}}, cloudMetadata: {enabled: true}}
  => {singleuser.networkTools.image.name: ""}
singleuser: {} => {says: [networkTools.image is not in this file]}
{imagePullSecret: {create: true, registry: r, username: u, password: hidden}, imagePullSecrets: [all, {name: object}],
  singleuser: {image: {pullSecrets: [users]}, profileList: [{kubespawner_override: {image: "private/a:1",
  image_pull_secrets: [{name: profile}, users]}}]}} => {imagePullSecrets: [all, object, image-pull-secret],
  singleuser.image.pullSecrets: [users, profile], unsaid: [hidden]}
{singleuser: {}, imagePullSecret: {create: true}, fullnameOverride: lab} => {imagePullSecrets: [lab-image-pull-secret]}
{singleuser: {}, imagePullSecret: {create: true}, fullnameOverride: null}
  => {imagePullSecrets: [hub-jupyterhub-image-pull-secret]}
{singleuser: {}, imagePullSecret: {create: true}, fullnameOverride: null, nameOverride: hub}
  => {imagePullSecrets: [hub-image-pull-secret]}
singleuser: {extraResource: {limits: {nvidia.com/gpu: "1"}, guarantees: {example.com/x: many}}}
  => {singleuser.extraResource: {limits: {nvidia.com/gpu: "1"}, guarantees: {}},
  named: {'singleuser.extraResource.guarantees."example.com/x"': 1}}
""")
SCHEDULER = table("""
{singleuser: {}, fullnameOverride: ""} => {values.replaceSchedulers: [hub-user-scheduler]}
{singleuser: {}, fullnameOverride: lab} => {values.replaceSchedulers: [lab-user-scheduler]}
{singleuser: {}, fullnameOverride: null} => {values.replaceSchedulers: [hub-jupyterhub-user-scheduler]}
{singleuser: {}, fullnameOverride: null, nameOverride: hu} => {values.replaceSchedulers: [hub-user-scheduler]}
scheduling: {userScheduler: {enabled: false, replicas: 1}}
  => {values.scheduler: {target: none}, podClasses.user.join: {}, values.replaceSchedulers: null,
  podClasses.user.warm: null, podClasses.placeholder.join: null, unsaid: [userScheduler.]}
scheduling: {userScheduler: {replicas: 1, logLevel: 6, pdb: {enabled: true, maxUnavailable: 2},
  nodeSelector: {pool: core}, labels: {team: hub}, image: {name: mirror.example.org/kube-scheduler,
  pullSecrets: [{name: mirror}, other]}, resources: {requests: {cpu: 0.01, memory: 64Mi}, limits: {memory: 1G}}}}
  => {scheduler.replicas: 1, scheduler.logLevel: 6, scheduler.pdb.maxUnavailable: 2, scheduler.labels: {team: hub},
  scheduler.nodeSelector: {pool: core}, webhook.nodeSelector: {pool: core}, imagePullSecrets: [mirror, other],
  scheduler.image.name: mirror.example.org/kube-scheduler,
  scheduler.resources: {requests: {cpu: 10m, memory: 64Mi}, limits: {memory: 1G}}}
scheduling: {userScheduler: {resources: {limits: {memory: 64Mi}}}} => {scheduler.resources.requests.memory: 64Mi}
scheduling: {userScheduler: {image: {tag: v1.29.1}}}
  => {named: {scheduling.userScheduler.image.tag: 1}, scheduler.image.tag: ""}
scheduling: {podPriority: {enabled: true, globalDefault: true, defaultPriority: 10, userPlaceholderPriority: 0,
  imagePullerPriority: 1}}
  => {priorityClasses: {enabled: true, globalDefault: true, user: 10, placeholder: 0, puller: 1},
  says: ["podPriority.globalDefault: false"], named: {}}
scheduling: {podPriority: {enabled: true}} => {priorityClasses.puller: -5}
scheduling: {podPriority: {enabled: true, imagePullerPriority: -7}} => {priorityClasses.puller: -7}
scheduling: {podPriority: {enabled: true, defaultPriority: -5}} => {priorityClasses.puller: -6}
scheduling: {podPriority: {enabled: true, imagePullerPriority: 100}} => {priorityClasses.puller: -1}
scheduling: {podPriority: {enabled: true, defaultPriority: 10, userPlaceholderPriority: 0}}
  => {says: [must (its users have priority 10 through it) stay]}
scheduling: {podPriority: {enabled: false, defaultPriority: 10}} => {values.priorityClasses: null}
scheduling: {userScheduler: {pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated,
  resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}]}}}]}} => {values.scheduler: null}
""")
BINDER = """{imageBuilderType: dind, dind: {resources: {requests: {cpu: "1", memory: 4Gi}}},
  config: {BinderHub: {use_registry: true, image_prefix: registry.example.org/binder-}, KubernetesBuildExecutor: {
  sticky_builds: true, namespace: builds, node_selector: {pool: builds}%s}},
  jupyterhub: {singleuser: {cpu: {guarantee: 0.1}}}}"""
BUILDS = table(f"""
{BINDER % ", resources: {requests: {cpu: 200m, memory: 2G}, limits: {memory: 2G}}"}
  => {{podClasses.build.home.builders.labels: {{component: image-builder, app: binder}},
  podClasses.build.match.namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: builds}}}},
  singleuser.memory.guarantee: null, imageGate.mode: "off",
  podClasses.build.resources: {{cpu: 200m, memory: 2G}}, set.resources: {{requests: {{cpu: 100m}}}},
  switch: ["config.KubernetesBuildExecutor.sticky_builds: false"], unsaid: [Roost gives builds requests],
  named: {{dind.resources: 1, config.KubernetesBuildExecutor.node_selector: 1}}}}
{BINDER % ""}
  => {{says: ["config.KubernetesBuildExecutor.resources is not in this file: Roost gives builds requests"]}}
{{imageBuilderType: host, jupyterhub: {{}}}} => {{podClasses.build.home.builders.labels: {{}}}}
binderhub: {{config: {{BinderHub: {{use_registry: true}}}}}} => {{podClasses.build.home.builders.labels: {{}}}}
binderhub: {{config: {{BinderHub: {{sticky_builds: true, build_memory_request: 1G}}}}}}
  => {{podClasses.build.home.builders.labels: {{component: image-builder, app: binder}},
  podClasses.build.resources.memory: 1Gi, switch: ["binderhub.config.BinderHub.sticky_builds: false"]}}
{{imageBuilderType: pink, config: {{KubernetesBuildExecutor: {{sticky_builds: false}}}}}}
  => {{podClasses.build.home: null}}
{{imageBuilderType: host, config: {{KubernetesBuildExecutor: {{sticky_builds: false}}}}}}
  => {{podClasses.build.home: null}}
""")


def seen(result: ImportResult, key: str) -> object:
    head, _, rest = key.partition(".")
    if head in ("set", "values"):
        return child(placeholder(result) if head == "set" else result.values, *rest.split("."))
    return value(result, key)


@pytest.mark.parametrize(("hub", "expected"), [*CASES, *PLACEHOLDERS, *PULLERS, *SCHEDULER, *BUILDS])
def test_what_a_hub_says_is_kept_or_named(hub: str, expected: str) -> None:
    result, wanted = imported(hub), yaml.safe_load(expected)
    said = result.report() + result.to_yaml()
    assert [text for text in wanted.pop("says", ()) if text not in said] == []
    assert [text for text in wanted.pop("unsaid", ()) if text in said] == []
    assert wanted.pop("named", unmapped(result)) == unmapped(result)
    assert set(wanted.pop("switch", ())) <= set(result.switch_off)
    assert {key: seen(result, key) for key in wanted} == wanted


def test_a_plain_hub_says_what_to_switch_off_and_gets_placeholders_as_large_as_its_users_where_they_may_go() -> None:
    result = imported(PLAIN)
    kept = ("image.name", "image.tag", "memory.guarantee")
    assert [value(result, f"singleuser.{key}") for key in kept] == ["quay.io/lab/notebook", "2026.08", "1G"]
    assert result.switch_off == [
        "scheduling.userScheduler.enabled: false",
        "scheduling.userPlaceholder.replicas: 0",
        "prePuller.continuous.enabled: false    # Roost's puller does this",
    ]
    assert all(line in result.to_yaml() and line in result.report() for line in result.switch_off)
    assert any("podPriority.enabled: true can stay" in note for note in result.notes)
    assert result.unmapped == []
    entry = placeholder(result)
    # KubeSpawner reads G as a power of 1024.
    assert entry["resources"] == {"requests": {"cpu": "250m", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "2Gi"}}
    assert (entry["replicas"], entry["nodeSelector"]) == (4, {"pool": "students"})
    assert entry["requiredNodeTerms"] == [PURPOSE_USER]
    tolerations = entry["tolerations"]
    assert isinstance(tolerations, list)
    *others, last = tolerations
    assert last == {"key": "course", "operator": "Exists"}
    assert [toleration.get("value") for toleration in others] == ["user", "user"]


def test_a_null_for_a_whole_section_is_absent() -> None:
    nulls = "scheduling: {userScheduler: null, userPlaceholder: {replicas: null}}\nsingleuser: {memory: null}"
    assert imported(nulls).values == imported("").values


@pytest.mark.parametrize("section", ["scheduling: {userScheduler: %s}", "hub: %s"])
def test_programs_tolerate_the_taints_of_the_nodes_that_they_are_sent_to(section: str) -> None:
    core = {"key": "core", "operator": "Exists"}
    result = imported(section % {"nodeSelector": {"pool": "core"}, "tolerations": [core]})
    usual = child(defaults().values, "corePods", "tolerations")
    for program in PROGRAMS[1:]:
        assert value(result, f"{program}.nodeSelector") == {"pool": "core"}
        assert value(result, f"{program}.tolerations") == [*usual, core]  # type: ignore[misc]
    assert result.unmapped == []


def test_core_pods_that_require_core_nodes_bring_roosts_there() -> None:
    result = imported("scheduling: {corePods: {nodeAffinity: {matchNodePurpose: require}, tolerations: []}}")
    assert all("core" in str(value(result, f"{part}.{REQUIRED}")) for part in PROGRAMS)
    assert [value(result, f"{part}.tolerations") for part in PROGRAMS] == [[]] * 4


def test_placement_keys_without_counterpart_are_named_with_their_line() -> None:
    result = imported("""
        jupyterhub:
          scheduling:
            userScheduler:
              extraPodSpec:
                hostNetwork: true
            somethingNew:
              deeper: 1
          prePuller:
            extraTolerations:
              - {key: a}
            hook:
              nodeSelector: {pool: core}
        """)
    assert unmapped(result) == {
        "jupyterhub.scheduling.userScheduler.extraPodSpec": 5,
        "jupyterhub.scheduling.somethingNew.deeper": 8,
        "jupyterhub.prePuller.hook.nodeSelector": 13,
    }


def test_own_plugins_are_kept_over_the_charts_as_helm_merges_them() -> None:
    own = "{score: {enabled: [{name: NodeAffinity, weight: 7}]}}"
    profile = value(imported(f"scheduling: {{userScheduler: {{plugins: {own}}}}}"), "scheduler.profiles.user")
    assert child(profile, "plugins", "score", "enabled") == [{"name": "NodeAffinity", "weight": 7}]
    assert "NodeResourcesFit" in str(child(profile, "plugins", "score", "disabled"))
    assert "MostAllocated" in str(child(profile, "pluginConfig"))


def test_tolerations_of_scheduler_and_puller_stand_beside_the_charts() -> None:
    result = imported("""
        scheduling: {userScheduler: {nodeSelector: {pool: core}, tolerations: [{key: spot, operator: Exists}]}}
        prePuller: {extraTolerations: [{key: puller, operator: Exists}]}
        """)
    for key, keys in (("scheduler", ["spot"]), ("webhook", ["spot"]), ("prePuller", ["puller"])):
        assert [one["key"] for one in value(result, f"{key}.tolerations")][2:] == keys  # type: ignore[attr-defined]


MEMBER = """
    etcJupyter: {}
    cryptnono: {enabled: true}
    binderhubEnabled: true
    binderhub:
      imageBuilderType: dind
      config:
        BinderHub: {pod_quota: 300, per_repo_quota: 100, sticky_builds: true}
        KubernetesBuildExecutor:
          resources: {requests: {cpu: 100m, memory: 2G}, limits: {cpu: "1", memory: 2G}}
      jupyterhub:
        scheduling:
          userPlaceholder: {enabled: false, replicas: 75}
          userScheduler: {enabled: false}
        singleuser:
          memory: {guarantee: 450M, limit: 2G}
          cpu: {guarantee: 0.01, limit: 1}
"""


def test_a_binder_federation_member() -> None:
    result = imported(MEMBER)
    assert result.values == {
        "scheduler": {"target": "none"},
        # Drawn to nobody, as before.
        "podClasses": {"user": {"join": {"user": None}, "warm": None}, "build": {"resources": {"memory": "2G"}}},
        "imageGate": {"mode": "off"},
        "prePuller": {"enabled": False},
        "singleuser": {"cpu": {"guarantee": 0.01, "limit": 1}, "memory": {"guarantee": "450M", "limit": "2G"}},
        "placeholders": [],
    }
    assert result.switch_off == ["binderhub.config.BinderHub.sticky_builds: false"]
