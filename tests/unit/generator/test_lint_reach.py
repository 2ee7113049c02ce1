"""`roost validate` names every node that users may use and that no puller brings their image to, with the fix."""

import pytest

from tests.unit.generator.linted import found

IMAGE = 'image: {name: a/b, tag: "1"}'
COLD = "never get the images in advance: users there start cold"
# What to find, and in which words; beside it nothing.
CASES = {
    "nobody pulls": (
        f"singleuser: {{{IMAGE}}}\nprePuller: {{enabled: false}}",
        "prePuller.enabled: false with imageGate.pullerPods: roost: nothing pulls images",
    ),
    "one puller for all users, and a profile with nodes of its own": (
        (
            f"singleuser: {{{IMAGE}, profileList: [{{}}, {{kubespawner_override: {{"
            "tolerations: [{operator: Exists}], extra_resource_limits: {a/b: 1}}}]}\n"
            "prePuller: {enabled: false}\nimageGate: {pullerPods: zeroToJupyterHub}"
        ),
        "singleuser.profileList[1]: tolerations and extra_resource_limits: zero-to-jupyterhub has one puller for all",
    ),
    "the same in a choice": (
        (
            f"singleuser: {{{IMAGE}, profileList: [{{profile_options: {{a: {{choices: {{b: {{kubespawner_override: "
            "{node_selector: {pool: b}}}}}}}]}\n"
            "prePuller: {enabled: false}\nimageGate: {pullerPods: zeroToJupyterHub}"
        ),
        "singleuser.profileList[0]: node_selector: zero-to-jupyterhub has one puller",
    ),
    "fewer nodes than users": (
        f"singleuser: {{{IMAGE}}}\nprePuller: {{nodeSelector: {{pool: a}}}}",
        "prePuller.nodeSelector.pool: users may use nodes without pool=a",
    ),
    "profiles that are not pulled": (
        (
            f'singleuser: {{{IMAGE}, profileList: [{{kubespawner_override: {{image: "c:1"}}}}]}}\n'
            "prePuller: {pullProfileListImages: false}"
        ),
        "prePuller.pullProfileListImages: false: the images of 1 profile(s) are not pulled to any node",
    ),
    "a Secret that the puller lacks": (
        f"singleuser: {{{IMAGE}, profileList: [{{kubespawner_override: {{image_pull_secrets: [{{name: mine}}]}}}}]}}",
        "singleuser.profileList[0]: its users pull with the Secret mine, which the puller doesn't have",
    ),
    "nodes of placeholders with a taint that no puller tolerates": (
        f"singleuser: {{{IMAGE}}}\nplaceholder: {{defaults: {{tolerations: [{{key: big, operator: Exists}}]}}}}",
        "placeholders[0]: no puller tolerates big, as these placeholders do",
    ),
    "user pools that the puller was kept off": (
        f"singleuser: {{{IMAGE}}}\nprePuller: {{tolerations: []}}",
        "placeholders[0]: no puller tolerates hub.jupyter.org/dedicated=user:NoSchedule and",
    ),
    "nodes of placeholders with other labels": (
        (
            f"singleuser: {{{IMAGE}, nodeSelector: {{pool: a}}}}\n"
            "placeholders: [{name: b, replicas: 1, nodeSelector: {pool: b}}]"
        ),
        "placeholders[0]: no puller runs on nodes with pool=b",
    ),
    "a placeholder without the GPU of its user": (
        (
            f"singleuser: {{{IMAGE}, extraResource: {{limits: {{nvidia.com/gpu: 2}}}}}}\n"
            "placeholders: [{name: a, replicas: 1, resources: {requests: {cpu: 1}, limits: {nvidia.com/gpu: 1}}}]"
        ),
        "placeholders[0].resources: the placeholder requests 1 of nvidia.com/gpu, but a user 2",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_way_to_a_cold_start_is_named_with_its_fix(case: str) -> None:
    text, words = CASES[case]
    (fault,) = found(text)
    assert words in str(fault)
    assert fault.severity == "warning"
    assert fault.fix


GPU = (
    f"singleuser: {{{IMAGE}, profileList: [{{kubespawner_override: {{image: 'gpu:1', node_selector: {{pool: gpu}}, "
    "tolerations: [{key: nvidia.com/gpu, operator: Exists}]}}]}\n"
)
FINE = {
    "a set for a profile's nodes": (
        GPU + "placeholders: [{name: gpu, replicas: 1, nodeSelector: {pool: gpu}, tolerations: ["
        "{key: hub.jupyter.org/dedicated, operator: Exists}, {key: hub.jupyter.org_dedicated, operator: Exists}, "
        "{key: nvidia.com/gpu, operator: Exists}]}]"
    ),
    "no images": "prePuller: {enabled: false}",
    "no gate": f'singleuser: {{{IMAGE}}}\nprePuller: {{enabled: false}}\nimageGate: {{mode: "off"}}',
    "the other chart's puller": (
        f"singleuser: {{{IMAGE}}}\nprePuller: {{enabled: false}}\nimageGate: {{pullerPods: zeroToJupyterHub}}"
    ),
    "a placeholder with the GPU of its user": (
        f"singleuser: {{{IMAGE}, extraResource: {{limits: {{nvidia.com/gpu: 1}}}}}}\n"
        "placeholders: [{name: a, replicas: 1, resources: {requests: {cpu: 1}, limits: {nvidia.com/gpu: 1}}}]"
    ),
    "a known Secret": (
        'singleuser: {image: {name: a/b, tag: "1", pullSecrets: [mine]}, '
        'profileList: [{kubespawner_override: {image: "c:1", image_pull_secrets: [mine]}}]}'
    ),
    "no placeholders": f"singleuser: {{{IMAGE}}}\nplaceholders: []",
}


@pytest.mark.parametrize("case", FINE)
def test_what_is_reached_is_not_warned_of(case: str) -> None:
    assert [str(fault) for fault in found(FINE[case])] == []
