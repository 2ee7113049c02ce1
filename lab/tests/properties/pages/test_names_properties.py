from hypothesis import given
from hypothesis import strategies as st

from roost_lab.pages.names import LEAST_LENGTH, shorten

PART = (
    st.text("ab0-.", max_size=12)
    | st.sampled_from(["x" * 30, "pool-", ".internal", "…", "~2"])
    | st.text(max_size=6)
)
NAMES = st.builds(
    lambda begin, middles, end: [begin + middle + end for middle in middles],
    st.sampled_from(["", "gke-cluster-", "ip-10-0-", "registry.example.org/hub/"]),
    st.lists(st.lists(PART, max_size=4).map("".join), max_size=12),
    st.sampled_from(["", ".eu-west-1.compute.internal", ":2026.10", "@sha256:" + "0a1b" * 16]),
)


@given(NAMES, NAMES, st.integers(LEAST_LENGTH, 40))
def test_short_names_fit_and_are_as_different_as_the_names(
    names: list[str], others: list[str], length: int
) -> None:
    short = shorten([*names, *others], length)
    assert set(short) == {*names, *others}
    assert len(set(short.values())) == len(short)
    assert all(len(text) <= length for text in short.values())
    if all(len(name) <= length for name in short):
        assert all(name == text for name, text in short.items())
