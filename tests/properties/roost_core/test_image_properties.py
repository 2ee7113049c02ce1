"""What must always hold of image references: one image has one full name, however it is written."""

from hypothesis import example, given
from hypothesis import strategies as st

from generator.render.functions import pulled_labels
from roost_core.objects.image_references import normalise_reference
from roost_core.placement.labels import pulled_label

REGISTRIES = st.sampled_from(["quay.io", "registry-1.docker.io", "localhost", "localhost:5000", "Registry", "a.b:1"])
PARTS = st.from_regex(r"[a-z0-9]{1,4}([._-][a-z0-9]{1,4})?", fullmatch=True).filter(lambda part: part != "localhost")
# What a name on Docker Hub may begin with; with a dot it would be read as a registry.
TEAMS = PARTS.filter(lambda part: "." not in part)
TAGS = st.sampled_from(["", ":latest", ":1", ":A_b"])
DIGESTS = st.sampled_from(["", "@sha256:" + "0" * 64])
REFERENCES = st.builds(
    lambda parts, tag, digest: "/".join(parts) + tag + digest,
    st.lists(st.one_of(PARTS, REGISTRIES, st.sampled_from(["docker.io", "index.docker.io", "library"])), min_size=1),
    TAGS,
    DIGESTS,
)


@given(REFERENCES)
@example("docker.io/ubuntu")
@example("index.docker.io")
def test_a_full_name_is_its_own(reference: str) -> None:
    full = normalise_reference(reference)
    assert normalise_reference(full) == full
    registry, _, path = full.partition("/")
    assert registry != "index.docker.io"
    assert path
    # Never a name that Docker Hub couldn't have.
    assert registry != "docker.io" or "/" in path


@given(name=PARTS, team=st.none() | TEAMS, tag=TAGS, digest=DIGESTS)
def test_all_names_of_an_image_on_docker_hub_are_one(name: str, team: str | None, tag: str, digest: str) -> None:
    path = name if team is None else f"{team}/{name}"
    spellings = [f"{prefix}{path}" for prefix in ("", "docker.io/", "index.docker.io/")]
    if team is None:
        spellings += [f"{prefix}library/{path}" for prefix in ("", "docker.io/", "index.docker.io/")]
    assert len({normalise_reference(spelling + tag + digest) for spelling in spellings}) == 1


@given(registry=REGISTRIES, name=PARTS, tag=TAGS, digest=DIGESTS)
def test_an_image_of_another_registry_is_never_one_of_docker_hub(
    registry: str, name: str, tag: str, digest: str
) -> None:
    assert normalise_reference(f"{registry}/{name}{tag}{digest}").startswith(f"{registry}/{name}")


@given(st.lists(PARTS, min_size=1, max_size=3), st.one_of(st.just("docker.io"), REGISTRIES))
@example(["a.b", "c"], "docker.io")
@example(["library", "a", "b"], "docker.io")
def test_admission_by_policy_knows_no_spelling_that_means_another_image(parts: list[str], registry: str) -> None:
    name = "/".join([registry, *parts])
    for spelling, label in pulled_labels("hub", "jhub", {"image": {"name": name}}, {}).items():
        assert normalise_reference(spelling) == normalise_reference(name)
        assert label == pulled_label("hub", "jhub", name)
