"""What `roost import` promises of users is true of the pod that the real KubeSpawner makes from the
same values, however the hub says where its users go: in values, in `hub.config`, in Python.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from generator.importing.importer import import_layers
from generator.importing.result import ImportResult
from generator.importing.summary import PLACE, PLACEHOLDERS
from generator.importing.trial_pods import UserPod, user_pods
from generator.values.files import read_defaults
from generator.values.lookups import listing
from generator.values.merge import coalesce
from generator.values.release_name import Release
from roost.commands.hub_trial import TrialWorld, fare, try_import, world_of
from roost_core.objects.node import Node
from roost_core.objects.pod import Pod
from roost_core.objects.pod_reader import read_pod
from roost_core.objects.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from roost_core.objects.selectors import Taint
from roost_core.placement.labels import LINUX, OS_LABEL
from roost_core.scheduler.cycle import schedule
from roost_core.scheduler.profile import default_profile
from roost_core.scheduler.state import ClusterState
from tests.chart_spawner import real_pods
from tests.recorded_data import HUBS, PUBLIC_HUBS, VALUES


def rooms_fit(world: TrialWorld, user: UserPod) -> bool:
    """Whether a user may go wherever placeholders of some set may stand."""
    asked = read_pod(user.pod)
    profile = default_profile(Release().kube_minor[1])
    rooms = [pool_node(placeholder, asked) for _, placeholder in world.placeholders]
    decisions = [schedule(asked, ClusterState([room], []), profile) for room in rooms]
    return any(decision.node is not None for decision in decisions)


def pool_node(placeholder: Pod, user: Pod) -> Node:
    """A node that has no more than a placeholder asks for: the labels that it requires, and a taint
    for each of its tolerations. It is large enough for any user.
    """
    spec = placeholder.spec
    labels = {OS_LABEL: LINUX, **dict(spec.node_selector)}
    for term in (spec.required_node_terms or ())[:1]:
        for key, operator, values in term.expressions:
            if operator in ("In", "Exists"):
                labels.setdefault(key, min(values, default=""))
    taints = [
        Taint(toleration.key, toleration.value, toleration.effect or "NoSchedule")
        for toleration in spec.tolerations
        # The kubelet's own: no pool has them.
        if toleration.key and not toleration.key.startswith("node.kubernetes.io/")
    ]
    resources = (PODS, CPU, MEMORY, EPHEMERAL_STORAGE, *dict(user.spec.requests))
    return Node("room", labels, tuple(taints), allocatable=dict.fromkeys(resources, 10**15))


TOLERATION = {"key": "students", "operator": "Exists", "effect": "NoSchedule"}
TERM = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
# Trait -> an entry of it, and the whole of it.
TRAITS: dict[str, tuple[Any, Any]] = {
    "tolerations": (TOLERATION, [TOLERATION]),
    "node_selector": ({"pool": "students"}, {"pool": "students"}),
    "node_affinity_required": (TERM, [TERM]),
    "mem_guarantee": ("4G", "4G"),
    "extra_resource_limits": ({"example.com/gpu": "1"}, {"example.com/gpu": "1"}),
}
# T: the trait, V: its value, W: another value of that kind, E: one entry, K and I: of a mapping its
# key and item.
ANY_SHAPE = [
    "c.KubeSpawner.T = V",
    "c['KubeSpawner'].T = V",
    "c.KubeSpawner['T'] = V",
    "setattr(c.KubeSpawner, 'T', V)",
    "c.KubeSpawner.update({'T': V})",
    "c.KubeSpawner.update(T=V)",
    "c.update({'KubeSpawner': {'T': V}})",
    "c.merge({'KubeSpawner': {'T': V}})",
    "k = c.KubeSpawner\nk.T = V",
    "k = c\nk.KubeSpawner.T = V",
    "value = V\nc.KubeSpawner.T = value",
    "name = 'T'\nsetattr(c.KubeSpawner, name, V)",
    "name = 'T'\nc.KubeSpawner[name] = V",
    "def f():\n  return V\nc.KubeSpawner.T = f()",
    "if True:\n  c.KubeSpawner.T = V",
    "if False:\n  c.KubeSpawner.T = V",
    "for value in (V,):\n  c.KubeSpawner.T = value",
    "try:\n  c.KubeSpawner.T = V\nexcept ValueError:\n  pass",
    "def hook(spawner):\n  spawner.T = V\nc.KubeSpawner.pre_spawn_hook = hook",
    "def hook(s):\n  setattr(s, 'T', V)\nc.KubeSpawner.pre_spawn_hook = hook",
    "async def hook(spawner):\n  spawner.T = V\nc.KubeSpawner.pre_spawn_hook = hook",
    (
        "def hook(spawner):\n  if spawner.user.name == 'x':\n    return\n  spawner.T = V\n"
        "c.KubeSpawner.pre_spawn_hook = hook"
    ),
    "def unused(spawner):\n  spawner.T = V",
    (
        "def more(spawner):\n  spawner.T = V\ndef hook(spawner):\n  more(spawner)\n"
        "c.KubeSpawner.pre_spawn_hook = hook"
    ),
    (
        "def first(spawner):\n  spawner.T = V\ndef hook(spawner):\n  pass\n"
        "c.KubeSpawner.pre_spawn_hook = first\nc.KubeSpawner.pre_spawn_hook = hook"
    ),
    "c.KubeSpawner.pre_spawn_hook = lambda spawner: setattr(spawner, 'T', V)",
    "def hook(spawner):\n  s = spawner\n  s.T = V\nc.KubeSpawner.pre_spawn_hook = hook",
    (
        "def hook(spawner):\n  spawner.trait_names()\n  spawner.set_trait('T', V)\n"
        "c.KubeSpawner.pre_spawn_hook = hook"
    ),
    'exec("c.KubeSpawner.T = V")',
    "c.Spawner.T = V",
    "from copy import deepcopy\nc.KubeSpawner.T = deepcopy(V)",
    "c.KubeSpawner.T = W\nc.KubeSpawner.T = V",
    "c.KubeSpawner.T = V\ndel c.KubeSpawner.T",
    "both = c.KubeSpawner.T = V",
    "(c.KubeSpawner.T, other) = (V, 1)",
]
OF_LISTS = [
    "c.KubeSpawner.T.append(E)",
    "c.KubeSpawner['T'].append(E)",
    "c.KubeSpawner.T.insert(0, E)",
    "c.KubeSpawner.T.extend([E])",
    "c.KubeSpawner.T += [E]",
    "c.KubeSpawner.T = c.KubeSpawner.T + [E]",
    "c.KubeSpawner.T = [*c.KubeSpawner.T, E]",
    "c.KubeSpawner.T = list(c.KubeSpawner.T) + [E]",
    "t = c.KubeSpawner.T\nt.append(E)",
    "t = list(c.KubeSpawner.T)\nt.append(E)\nc.KubeSpawner.T = t",
    "t = [E]\nc.KubeSpawner.T = t\nt.clear()",
    "c.KubeSpawner.T = [E]\nc.KubeSpawner.T.clear()",
    "c.KubeSpawner.T.clear()",
    "c.KubeSpawner.T[:] = [E]",
    "c.KubeSpawner.T = [dict(E)]",
    "c.KubeSpawner.T = [dict(item) for item in (E,)]",
    "for item in (E,):\n  c.KubeSpawner.T.append(item)",
    "list(map(c.KubeSpawner.T.append, [E]))",
    "[c.KubeSpawner.T.append(item) for item in [E]]",
    "getattr(c.KubeSpawner, 'T').append(E)",
    "add = c.KubeSpawner.T.append\nadd(E)",
    "c.KubeSpawner.T = {'a': E}",
    "item = E\nc.KubeSpawner.T.append(item)",
    "def hook(spawner):\n  spawner.T.append(E)\nc.KubeSpawner.pre_spawn_hook = hook",
    "def hook(spawner):\n  spawner.T = spawner.T + [E]\nc.KubeSpawner.pre_spawn_hook = hook",
    "def hook(spawner):\n  t = spawner.T\n  t.append(E)\nc.KubeSpawner.pre_spawn_hook = hook",
    "c.KubeSpawner.pre_spawn_hook = lambda s: s.T.append(E)",
]
OF_MAPPINGS = [
    "c.KubeSpawner.T['K'] = 'I'",
    "c.KubeSpawner.T.update(E)",
    "c.KubeSpawner.T |= E",
    "c.KubeSpawner.T.setdefault('K', 'I')",
    "c.KubeSpawner.T = {**c.KubeSpawner.T, 'K': 'I'}",
    "c.KubeSpawner.T = dict(c.KubeSpawner.T, **E)",
    "t = c.KubeSpawner.T\nt['K'] = 'I'",
    "def hook(spawner):\n  spawner.T['K'] = 'I'\nc.KubeSpawner.pre_spawn_hook = hook",
    "c.KubeSpawner.T.clear()",
]
OF_PODS = {
    "tolerations": [
        (
            "def hook(spawner, pod):\n  pod.spec.tolerations = V\n  return pod\n"
            "c.KubeSpawner.modify_pod_hook = hook"
        ),
        (
            "def hook(spawner, pod):\n  pod.spec.tolerations.append(E)\n  return pod\n"
            "c.KubeSpawner.modify_pod_hook = hook"
        ),
        (
            "def hook(spawner, pod):\n  setattr(pod.spec, 'tolerations', V)\n  return pod\n"
            "c.KubeSpawner.modify_pod_hook = hook"
        ),
        (
            "def hook(spawner, pod):\n  getattr(pod.spec, 'tolerations').append(E)\n  return pod\n"
            "c.KubeSpawner.modify_pod_hook = hook"
        ),
        (
            "def hook(spawner, pod):\n  spec = pod.spec\n  spec.tolerations.clear()\n  return pod\n"
            "c.KubeSpawner.modify_pod_hook = hook"
        ),
        "c.KubeSpawner.extra_pod_config = {'tolerations': V}",
        "c.KubeSpawner.extra_pod_config['tolerations'] = V",
        "c.KubeSpawner.extra_pod_config.update(tolerations=V)",
        "if True:\n  c.KubeSpawner.extra_pod_config = {'tolerations': V}",
        (
            "def hook(spawner):\n  spawner.extra_pod_config = {'tolerations': V}\n"
            "c.KubeSpawner.pre_spawn_hook = hook"
        ),
    ],
    "node_selector": [
        (
            "def hook(spawner, pod):\n  pod.spec.node_selector = V\n  return pod\n"
            "c.KubeSpawner.modify_pod_hook = hook"
        ),
        (
            "def hook(spawner, pod):\n  pod.spec.node_selector = {**(pod.spec.node_selector or {}),"
            " 'K': 'I'}\n  return pod\nc.KubeSpawner.modify_pod_hook = hook"
        ),
        "c.KubeSpawner.extra_pod_config = {'nodeSelector': V}",
        "c.KubeSpawner.extra_pod_config = {'node_selector': V}",
        "c.KubeSpawner.extra_pod_config = dict(node_selector=V)",
        "key = 'nodeSelector'\nc.KubeSpawner.extra_pod_config[key] = V",
    ],
    "node_affinity_required": [
        (
            "c.KubeSpawner.extra_pod_config = {'affinity': {'nodeAffinity':"
            " {'requiredDuringSchedulingIgnoredDuringExecution': {'nodeSelectorTerms': V}}}}"
        )
    ],
    "mem_guarantee": [
        (
            "def hook(spawner, pod):\n  first = pod.spec.containers[0]\n"
            "  first.resources.requests['memory'] = '9Gi'\n"
            "  return pod\nc.KubeSpawner.modify_pod_hook = hook"
        )
    ],
}
# As values, below `hub.config.KubeSpawner` and the chart's own keys.
IN_VALUES = [
    '{"hub": {"config": {"KubeSpawner": {"T": V}}}}',
    '{"hub": {"config": {"Spawner": {"T": V}}}}',
    '{"singleuser": {"profileList": [{"display_name": "A", "kubespawner_override": {"T": V}}]}}',
    (
        '{"hub": {"config": {"KubeSpawner": {"profile_list": [{"display_name": "A",'
        ' "kubespawner_override": {"T": V}}]}}}}'
    ),
    (
        '{"singleuser": {"profileList": [{"display_name": "A", "profile_options": {"o":'
        ' {"display_name": "O", "choices": {"x": {"display_name": "X",'
        ' "kubespawner_override": {"T": V}}}}}}]}}'
    ),
]
BY_NAME = [text for text in IN_VALUES if "options" not in text]


@st.composite
def hubs(draw: st.DrawFn) -> dict[str, Any]:
    """Values of a hub that says one to three things about where its users go, or how large they
    are.
    """
    hub: dict[str, Any] = {
        "singleuser": {"image": {"name": "a/b", "tag": "1"}, "cloudMetadata": {}},
        "scheduling": {
            "userPlaceholder": {"enabled": True, "replicas": 3},
            "podPriority": {"enabled": True},
        },
    }
    if draw(st.booleans()):
        hub["scheduling"]["userPods"] = {"nodeAffinity": {"matchNodePurpose": "require"}}
    codes: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        trait = draw(st.sampled_from(sorted(TRAITS)))
        entry, whole = TRAITS[trait]
        is_list = isinstance(whole, list)
        if draw(st.integers(0, 3)) == 0:
            by_name = is_list and draw(st.booleans())
            value = {"b": entry} if by_name else whole
            text = draw(st.sampled_from(BY_NAME if by_name else IN_VALUES))
            made = json.loads(_replaced(_replaced(text, "T", trait), "V", json.dumps(value)))
            hub = coalesce(made, hub)
            continue
        texts = [*ANY_SHAPE, *OF_PODS.get(trait, ())]
        texts += OF_LISTS if is_list else OF_MAPPINGS if isinstance(whole, dict) else []
        text = draw(st.sampled_from(texts))
        codes.append(_written(text, trait, entry, whole))
    if codes:
        hub = coalesce(
            {"hub": {"extraConfig": {f"{at}": code for at, code in enumerate(codes)}}}, hub
        )
    return hub


def _written(text: str, trait: str, entry: object, whole: object) -> str:
    key, item = next(iter(entry.items())) if isinstance(entry, dict) else ("", "")
    other: object = [] if isinstance(whole, list) else {} if isinstance(whole, dict) else "2G"
    # Keywords and names hold letters that stand for something: each is replaced where it is alone.
    for letter, made in (("T", trait), ("V", repr(whole)), ("E", repr(entry)), ("W", repr(other))):
        text = _replaced(text, letter, made)
    return _replaced(_replaced(text, "K", key), "I", str(item))


def _replaced(text: str, letter: str, made: str) -> str:
    return re.sub(rf"(?<![A-Za-z_]){letter}(?![A-Za-z_])", lambda _: made, text)


def imported(hub: dict[str, Any]) -> ImportResult:
    result = import_layers([("hub.yaml", yaml.safe_dump(hub))])
    try_import(result)
    return result


def broken_promises(hub: dict[str, Any], result: ImportResult) -> list[str]:
    """What was promised to users, and isn't so for the pod that the real KubeSpawner makes."""
    whole: dict[str, Any] = coalesce(result.values, read_defaults().values)
    world = world_of(whole)
    promised = set(result.summary.promises)
    kept: set[str] = set()
    told = {user.chosen[:1]: user for user in reversed(user_pods(result, Release().namespace))}
    broken: list[str] = []
    (scheduler, *_) = [*listing(result.values.get("replaceSchedulers")), "hub-user-scheduler"]
    for user in real_pods(hub, str(scheduler)):
        outcome = fare(world, user)
        kept |= outcome.promises
        if PLACEHOLDERS in outcome.promises and not rooms_fit(world, user):
            kept -= {PLACEHOLDERS}
        # Of who takes a profile with its default choices.
        if user.chosen in told and not result.has_builds:
            said = fare(world, told[user.chosen]).promises - outcome.promises
            broken += [f"{promise} is told of {user.chosen}" for promise in sorted(said)]
    if whole["scheduler"]["target"] == "none":
        promised -= {PLACE}
    return broken + [f"{promise}: no pod shows it" for promise in sorted(promised - kept)]


# Of code that changes what is no list or mapping (yet): such a hub starts no server.
_RAISED_BY_CODE = (AttributeError, TypeError)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(hubs())
def test_promises_are_true_of_the_pod_that_kubespawner_makes(hub: dict[str, Any]) -> None:
    try:
        pods = list(real_pods(hub, "hub-user-scheduler"))
    except _RAISED_BY_CODE:
        reject()
    assert pods
    result = imported(hub)
    assert broken_promises(hub, result) == [], (result.tried, hub)


# Hubs whose values or code no KubeSpawner takes, and what is no hub's values.
_NO_SERVER = {"dropped-without-a-word", "profiles-set-in-python", "nebari", "hub-argo-sources"}
_NO_HUB = {"hub-drawn"}
HUB_FILES = [
    path
    for path in sorted(
        [*PUBLIC_HUBS.glob("*.yaml"), *HUBS.glob("*.yaml"), *VALUES.glob("hub-*.yaml")]
    )
    if path.stem not in _NO_SERVER | _NO_HUB and not path.stem.endswith("-kept")
]


@pytest.mark.parametrize("path", HUB_FILES, ids=lambda path: path.stem)
def test_promises_are_true_of_hubs_as_operators_have_them(path: Path) -> None:
    result = import_layers([(path.name, path.read_text())])
    try_import(result)
    assert result.hub is not None
    assert broken_promises(dict(result.hub.data), result) == [], result.tried
