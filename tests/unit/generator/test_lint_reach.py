"""`roost validate` names every node that users may use and that no puller brings their image to, with the fix."""

import pytest

from tests.unit.generator.linted import found, table

IMAGE = 'image: {name: a/b, tag: "1"}'
CASES = table(
    """
{singleuser: {IMAGE}, prePuller: {enabled: false}}
  => prePuller.enabled: false with imageGate.pullerPods: roost: nothing pulls images
{singleuser: {IMAGE, profileList: [{}, {kubespawner_override: {tolerations: [{operator: Exists}],
  extra_resource_limits: {a/b: 1}}}]}, prePuller: {enabled: false}, imageGate: {pullerPods: zeroToJupyterHub}}
  => singleuser.profileList[1]: tolerations and extra_resource_limits: zero-to-jupyterhub has one puller for all
{singleuser: {IMAGE, profileList: [{profile_options: {a: {choices: {b: {kubespawner_override: {node_selector:
  {pool: b}}}}}}}]}, prePuller: {enabled: false}, imageGate: {pullerPods: zeroToJupyterHub}}
  => singleuser.profileList[0]: node_selector: zero-to-jupyterhub has one puller
{singleuser: {IMAGE}, prePuller: {nodeSelector: {pool: a}}}
  => prePuller.nodeSelector.pool: users may use nodes without pool=a
{singleuser: {IMAGE, profileList: [{kubespawner_override: {image: "c:1"}}]}, prePuller: {pullProfileListImages: false}}
  => prePuller.pullProfileListImages: false: the images of 1 profile(s) are not pulled to any node
singleuser: {IMAGE, profileList: [{kubespawner_override: {image_pull_secrets: [{name: mine}]}}]}
  => singleuser.profileList[0]: its users pull with the Secret mine, which the puller doesn't have
{singleuser: {IMAGE}, placeholder: {defaults: {tolerations: [{key: big, operator: Exists}]}}}
  => placeholders[0]: no puller tolerates big, as these placeholders do
{singleuser: {IMAGE}, prePuller: {tolerations: []}}
  => placeholders[0]: no puller tolerates hub.jupyter.org/dedicated=user:NoSchedule and
{singleuser: {IMAGE, nodeSelector: {pool: a}}, placeholders: [{name: b, replicas: 1, nodeSelector: {pool: b}}]}
  => placeholders[0]: no puller runs on nodes with pool=b
{singleuser: {IMAGE, extraResource: {limits: {nvidia.com/gpu: 2}}},
  placeholders: [{name: a, replicas: 1, resources: {requests: {cpu: 1}, limits: {nvidia.com/gpu: 1}}}]}
  => placeholders[0].resources: the placeholder requests 1 of nvidia.com/gpu, but a user 2
""".replace("IMAGE", IMAGE)
)
# A set for a profile's nodes, no images, no gate, the other chart's puller, a placeholder with the GPU of its user, a
# Secret that is known, no placeholders.
FINE = table(
    """
{singleuser: {IMAGE, profileList: [{kubespawner_override: {image: 'gpu:1', node_selector: {pool: gpu},
  tolerations: [{key: nvidia.com/gpu, operator: Exists}]}}]}, placeholders: [{name: gpu, replicas: 1,
  nodeSelector: {pool: gpu}, tolerations: [{key: hub.jupyter.org/dedicated, operator: Exists},
  {key: hub.jupyter.org_dedicated, operator: Exists}, {key: nvidia.com/gpu, operator: Exists}]}]}
prePuller: {enabled: false}
{singleuser: {IMAGE}, prePuller: {enabled: false}, imageGate: {mode: "off"}}
{singleuser: {IMAGE}, prePuller: {enabled: false}, imageGate: {pullerPods: zeroToJupyterHub}}
{singleuser: {IMAGE, extraResource: {limits: {nvidia.com/gpu: 1}}},
  placeholders: [{name: a, replicas: 1, resources: {requests: {cpu: 1}, limits: {nvidia.com/gpu: 1}}}]}
singleuser: {image: {name: a/b, tag: "1", pullSecrets: [mine]},
  profileList: [{kubespawner_override: {image: "c:1", image_pull_secrets: [mine]}}]}
{singleuser: {IMAGE}, placeholders: []}
""".replace("IMAGE", IMAGE)
)


@pytest.mark.parametrize(("text", "words"), CASES)
def test_a_way_to_a_cold_start_is_named_with_its_fix_and_nothing_beside(text: str, words: str) -> None:
    (fault,) = found(text)
    assert words in str(fault)
    assert fault.severity == "warning"
    assert fault.fix


@pytest.mark.parametrize(("text", "_reason"), FINE)
def test_what_is_reached_is_not_warned_of(text: str, _reason: str) -> None:
    assert [str(fault) for fault in found(text)] == []
