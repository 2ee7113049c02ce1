"""How `tools/registry.py` asks registries."""

import json
from collections.abc import Mapping

import pytest

from tools.registry import Answer, Registries, RegistryError


class Registry:
    """A registry that wants a token for everybody, as most do."""

    def __init__(self, status: int = 200, realm: str = "https://auth.example.org/token") -> None:
        self.status = status
        self.realm = realm
        self.asked: list[str] = []

    def fetch(self, method: str, url: str, headers: Mapping[str, str]) -> Answer:
        self.asked.append(f"{method} {url}")
        if url.startswith(f"{self.realm}?"):
            return Answer(200, {}, b'{"token": "t"}')
        if headers.get("Authorization") != "Bearer t":
            challenge = f'Bearer realm="{self.realm}",service="r",scope="repository:a/b:pull"'
            return Answer(401, {"www-authenticate": challenge}, b"")
        if self.status != 200:
            return Answer(self.status, {}, b"")
        following = {"link": '</v2/a/b/tags/list?last=2&n=1000>; rel="next"'} if "last" not in url else {}
        return Answer(200, following, json.dumps({"tags": ["3"] if "last" in url else ["1", "2"]}).encode())


@pytest.mark.parametrize("realm", ["https://auth.example.org/token", "http://localhost:5000/token"])
def test_all_pages_of_tags_are_read_with_one_token_from_where_the_registry_says(realm: str) -> None:
    registry = Registry(realm=realm)
    assert Registries(registry.fetch).tags("r.example.org/a/b") == ["1", "2", "3"]
    assert sum(f"{realm}?" in line for line in registry.asked) == 1
    assert registry.asked[-1] == "GET https://r.example.org/v2/a/b/tags/list?last=2&n=1000"


@pytest.mark.parametrize(
    "realm", ["file:///etc/passwd", "http://169.254.169.254/token", "http://localhost.example.org/"]
)
def test_no_token_is_fetched_from_a_file_or_without_encryption(realm: str) -> None:
    registry = Registry(realm=realm)
    with pytest.raises(RegistryError, match="it asks who you are"):
        Registries(registry.fetch).tags("r.example.org/a/b")
    assert registry.asked == ["GET https://r.example.org/v2/a/b/tags/list?n=1000"]


def test_a_registrys_no_names_the_image() -> None:
    with pytest.raises(RegistryError, match=r"^r\.example\.org/a/b: r\.example\.org: it has no such image"):
        Registries(Registry(404).fetch).tags("r.example.org/a/b")
