"""What values and pods say: amounts, managed images, classes, repositories, and the home's bound on
load.
"""

from collections.abc import Sequence
from fractions import Fraction

import pytest
import yaml

from generator.render.managed_images import managed_images
from roost_core.objects.fields import JSONObject, MalformedObjectError
from roost_core.objects.image_references import normalise_reference
from roost_core.objects.pod_body import read_pod_body
from roost_core.objects.quantities import parse_hub_bytes, parse_quantity
from roost_core.release.class_of_pod import Classes
from roost_core.release.pod_classes import KeySource
from roost_core.release.repositories import PodTexts, repository_of
from tests.builders import NAMESPACE, build_pod, settings, user_pod
from tests.recorded_data import rows


@pytest.mark.parametrize(("text", "number"), rows("roost_core/quantities"))
def test_quantities_are_read_as_kubernetes_reads_them(text: object, number: int | str) -> None:
    assert parse_quantity(text) == Fraction(number)


@pytest.mark.parametrize(
    "text", ["", "much", "1 Gi", "1K", "1gi", "e3", "1e999999999", True, None, [], float("nan")]
)
def test_what_is_no_quantity_is_refused(text: object) -> None:
    with pytest.raises(ValueError):
        parse_quantity(text)


def test_k_m_g_t_are_powers_of_1024_to_the_hub_and_of_1000_to_kubernetes() -> None:
    assert parse_hub_bytes("1G") == 1_073_741_824
    assert parse_quantity("1G") == 1_000_000_000
    assert [parse_hub_bytes(text) for text in ("1K", "450M", "0.5T", 7)] == [
        1024,
        471_859_200,
        2**39,
        7,
    ]
    with pytest.raises(ValueError):
        parse_hub_bytes("1Gi")


@pytest.mark.parametrize(("written", "full"), rows("image-names"))
def test_an_image_has_the_full_name_that_the_kubelet_gives_it(written: str, full: str) -> None:
    assert normalise_reference(written) == full


@pytest.mark.parametrize(
    "odd",
    [None, [], "x", 1, {"image": None, "profileList": None}, {"image": [], "profileList": "x"}],
)
def test_odd_image_values_manage_nothing(odd: object) -> None:
    assert managed_images(odd, odd) == frozenset()


def class_name(
    labels: dict[str, str],
    namespace: str,
    known: dict[str, dict[str, str]] | None = None,
    **classes: object,
) -> str:
    read = settings(podClasses=classes)
    found = Classes(read.namespace, read.classes).classify(labels, namespace, known)
    return found.name if found is not None else ""


USER = {"component": "singleuser-server", "app": "jupyterhub"}


def test_a_pods_class_is_the_one_with_most_matching_labels_then_the_first_by_name() -> None:
    special = {"match": {"labels": USER}}
    assert class_name(USER, NAMESPACE, zebra=special) == "zebra"
    assert class_name(USER, NAMESPACE, zebra=special, aardvark=special) == "aardvark"
    assert class_name({"component": "singleuser-server"}, NAMESPACE, zebra=special) == "user"
    assert class_name({"component": "hub"}, NAMESPACE) == ""


def test_without_a_selector_a_class_lives_in_the_releases_namespace() -> None:
    assert class_name(USER, NAMESPACE) == "user"
    assert class_name(USER, "another-hub") == ""


@pytest.mark.parametrize(
    ("selector", "namespace", "known", "found"), rows("roost_core/user-namespaces")
)
def test_user_namespaces_are_found_by_the_classs_selector(
    selector: str, namespace: str, known: dict[str, str] | None, found: str
) -> None:
    user = {
        "match": {
            "labels": {"component": "singleuser-server"},
            "namespaceSelector": yaml.safe_load(selector),
        }
    }
    assert (
        class_name(USER, namespace, None if known is None else {namespace: known}, user=user)
        == found
    )


def repository(body: JSONObject, places: Sequence[KeySource]) -> str:
    pod = read_pod_body(body, NAMESPACE)
    return repository_of(PodTexts(pod.labels, pod.annotations, pod.containers), places)


def test_a_repository_is_read_from_the_first_place_that_names_it() -> None:
    places = [
        KeySource("annotation", "binder-repo"),
        KeySource("env", "BINDER_REPO_URL"),
        KeySource("image"),
    ]
    build = build_pod("https://github.com/a/b.git")
    assert repository(build, places) == "https://github.com/a/b.git"
    body = user_pod("registry.example.org/binder-a-2db-123456:f00")
    assert repository(body, places) == "registry.example.org/binder-a-2db-123456"
    variables = {"OTHER": "x", "BINDER_REPO_URL": "https://a/b"}
    body["spec"]["containers"][0]["env"] = [
        {"name": name, "value": value} for name, value in variables.items()
    ]
    assert repository(body, places) == "https://a/b"
    body["metadata"]["labels"]["repo"] = "from-label"
    assert repository(body, [KeySource("label", "repo"), *places]) == "from-label"
    assert repository(body, places[:1]) == ""


def test_repository_keys_keep_case_and_git_suffix_so_that_binderhubs_caches_stay_warm() -> None:
    places = [KeySource("annotation", "binder-repo")]
    texts = [
        f"https://github.com/{name}"
        for name in ("Org/Repo", "org/repo", "org/repo.git", "10.5281/zenodo.1")
    ]
    assert [repository(build_pod(text), places) for text in texts] == texts


@pytest.mark.parametrize("text", rows("roost_core/odd-pods"))
def test_what_is_no_pod_is_told_by_place_and_never_by_content(text: str) -> None:
    with pytest.raises(MalformedObjectError) as caught:
        read_pod_body(yaml.safe_load(text), NAMESPACE)
    assert "secret-token" not in str(caught.value)
