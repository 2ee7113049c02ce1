"""What `tools/publish` is given, and the archives that it pushes, whoever made them."""

import gzip
import io
import json
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.images import make_image, write_archive
from tests.releases import small_release
from tools.image import EPOCH_SECONDS
from tools.registry import Answer, Registry, RegistryError
from tools.release import build as release
from tools.release import oci, publish, sbom
from tools.release.addresses import REPOSITORIES, Addresses, parse_target
from tools.release.build import build_images, find_engine
from tools.release.checkout import BuildError
from tools.release.logins import LoginError, find_login, login_files
from tools.release.packages import package_chart
from tools.release.publish import main
from tools.root import ROOT

# No tar begins as a compressed file does.
LAYERS: Final = st.lists(
    st.binary(max_size=200).map(b"tar".__add__), min_size=1, max_size=4, unique=True
)
ADDRESS: Final = r"[a-z0-9]{1,5}(\.[a-z]{1,3}){1,2}(:[0-9]{2,4})?(/[a-z0-9]{1,4}){0,3}/?"


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("https://registry.example.org/me", "Leave out https://: registry.example.org/me"),
        ("oci://registry.example.org/me", "Leave out oci://: registry.example.org/me"),
        ("registry.example.org/Me", "no capitals"),
        ("registry.example.org/me:0.2.0", "The version is the tag"),
        ("registry.example.org/me@sha256:00", "The version is the tag"),
        ("me", "'me' is no host of a registry"),
        ("me/roost", "'me' is no host of a registry"),
        ("docker.io/me", "has no folders"),
        ("", "expected HOST/FOLDER"),
        ("registry.example.org/me too", "expected HOST/FOLDER"),
        ("--", "expected HOST/FOLDER"),
    ],
)
def test_a_wrong_address_is_named_with_its_fix(
    address: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--dist", "/nonexistent", "--", address]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"REGISTRY: found {address!r}" in printed.err
    assert said in printed.err


@given(st.from_regex(ADDRESS, fullmatch=True))
def test_what_is_an_address_comes_back_whole(address: str) -> None:
    target = parse_target(address)
    assert f"{target.host}/{target.folder}".rstrip("/") == address.rstrip("/")
    assert target.repository("chart") in (f"{target.folder}/charts/roost", "charts/roost")


@given(st.text(max_size=30))
def test_any_address_is_taken_or_refused_with_what_was_found(address: str) -> None:
    refusal = ""
    try:
        target = parse_target(address)
    except ValueError as error:
        refusal = str(error)
    if refusal:
        assert repr(address) in refusal
    else:
        assert re.fullmatch(r"[a-z0-9.:\[\]/_-]+", f"{target.host}/{target.folder}")


def saved(
    layers: list[bytes], packed: list[bool], *, is_old: bool, architecture: str = "arm64"
) -> bytes:
    """What `docker save` writes: layers as files, some compressed, under old or new names."""
    config = {"os": "linux", "architecture": architecture, "rootfs": {"type": "layers"}}
    members = {}
    names = []
    for number, (layer, is_packed) in enumerate(zip(layers, packed, strict=True)):
        name = f"{number}/layer.tar" if is_old else f"blobs/sha256/{number}"
        members[name] = gzip.compress(layer) if is_packed else layer
        names.append(name)
    members["config.json"] = json.dumps(config).encode()
    listed = [{"Config": "config.json", "RepoTags": ["localhost/roost:1"], "Layers": names}]
    members["manifest.json"] = json.dumps(listed).encode()
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for name, contents in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(contents)
            tar.addfile(member, io.BytesIO(contents))
    return written.getvalue()


@given(LAYERS, st.data(), st.booleans())
def test_a_saved_image_keeps_its_layers_in_their_order(
    layers: list[bytes], data: st.DataObject, is_old: bool
) -> None:
    packed = [data.draw(st.booleans()) for _ in layers]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "saved.tar").write_bytes(saved(layers, packed, is_old=is_old))
        for name in ("first.tar", "second.tar"):
            oci.from_saved(folder / "saved.tar", folder / name)
        assert (folder / "first.tar").read_bytes() == (folder / "second.tar").read_bytes()
        with oci.Archive(folder / "first.tar") as archive:
            archive.check()
            (manifest,) = archive.manifests()
            found = [gzip.decompress(archive.read(part)) for part in archive.parts(manifest)[1:]]
        assert found == layers
        assert oci.platforms(folder / "first.tar") == ["linux/arm64"]


@given(st.binary(max_size=300))
def test_what_is_no_archive_is_refused_by_name(contents: bytes) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "image.tar"
        path.write_bytes(contents)
        with pytest.raises(oci.ArchiveError, match=str(path)):
            oci.from_saved(path, Path(scratch) / "made.tar")
        with pytest.raises(oci.ArchiveError, match=str(path)), oci.Archive(path):
            pass


class Shelf:
    """A registry in memory: what was pushed to it, and in which order."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[str, bytes] = {}
        self.requests: list[tuple[str, str]] = []

    def send(
        self, method: str, url: str, headers: Mapping[str, str], data: bytes | IO[bytes] | None
    ) -> Answer:
        path = url.partition("registry.example.org")[2]
        self.requests.append((method, path))
        body = data if isinstance(data, bytes) else data.read() if data is not None else b""
        digest = path.rpartition("digest=")[2].replace("%3A", ":")
        if method in ("GET", "DELETE"):
            return Answer(200, {}, b"{}")
        if method == "HEAD":
            return Answer(200 if path.rpartition("/")[2] in self.blobs else 404, {}, b"")
        if method == "POST":
            return Answer(202, {"location": f"{path}1?state=a"}, b"")
        if "/manifests/" in path:
            for part in self.referred(body):
                assert part in {**self.blobs, **self.manifests}, "pushed before what it names"
            self.manifests[oci.digest_of(body)] = body
            self.manifests[path.rpartition("/")[2]] = body
        else:
            assert oci.digest_of(body) == digest
            self.blobs[digest] = body
        return Answer(201, {}, b"")

    def referred(self, manifest: bytes) -> list[str]:
        read = json.loads(manifest)
        entries = read.get("manifests") or [read["config"], *read["layers"]]
        return [entry["digest"] for entry in entries]


def of_two_platforms(folder: Path) -> Path:
    """The archive of an image for amd64 and for arm64."""
    archives = {}
    for architecture in ("amd64", "arm64"):
        image = make_image(size_bytes=100)
        config = json.loads(image.config) | {"architecture": architecture}
        body = json.dumps(config).encode()
        manifest = json.loads(image.manifest) | {"config": oci.describe(oci.CONFIG_TYPE, body)}
        path = folder / f"{architecture}.tar"
        blobs: dict[str, bytes | Path] = {
            oci.digest_of(blob): blob for blob in (body, *image.layers)
        }
        root = (oci.MANIFEST_TYPE, json.dumps(manifest).encode())
        oci.write_archive(path, root, blobs, f"linux/{architecture}")
        archives[f"linux/{architecture}"] = path
    joint = folder / "both.tar"
    oci.join(archives, joint)
    return joint


def by_buildkit(folder: Path) -> Path:
    """The same as BuildKit writes it: it says in the index how it built."""
    statement = b'{"predicateType": "https://slsa.dev/provenance/v0.2"}'
    config = b'{"architecture": "unknown", "os": "unknown", "config": {}}'
    manifest = {
        "schemaVersion": 2,
        "mediaType": oci.MANIFEST_TYPE,
        "config": oci.describe(oci.CONFIG_TYPE, config),
        "layers": [oci.describe("application/vnd.in-toto+json", statement)],
    }
    body = json.dumps(manifest).encode()
    blobs: dict[str, bytes | Path] = {
        oci.digest_of(blob): blob for blob in (body, config, statement)
    }
    with oci.Archive(of_two_platforms(folder)) as archive:
        index = json.loads(archive.read(archive.root))
        for image in archive.images():
            blobs[image.digest] = archive.read(image)
            blobs |= {part.digest: archive.read(part) for part in archive.parts(image)}
    index["manifests"].append(
        oci.describe(oci.MANIFEST_TYPE, body)
        | {"platform": {"architecture": "unknown", "os": "unknown"}}
    )
    path = folder / "by-buildkit.tar"
    oci.write_archive(path, (oci.INDEX_TYPE, json.dumps(index).encode()), blobs)
    return path


def test_an_image_of_two_platforms_is_pushed_after_all_that_it_names(tmp_path: Path) -> None:
    joint = of_two_platforms(tmp_path)
    assert oci.platforms(joint) == ["linux/amd64", "linux/arm64"]
    shelf = Shelf()
    registry = Registry("registry.example.org", environment={}, send=shelf.send)
    with oci.Archive(joint) as archive:
        digest = registry.push(archive, "me/roost", "1")
        assert oci.digest_of(shelf.manifests["1"]) == digest
        before = len(shelf.requests)
        # What is there isn't sent again.
        registry.push(archive, "me/roost", "2")
    again = [method for method, path in shelf.requests[before:] if "/blobs/" in path]
    assert set(again) == {"HEAD"}


def write_login(home: Path, host: str = "registry.example.org") -> None:
    """What `docker login` leaves in `home`."""
    (home / ".docker").mkdir()
    auths = {host: {"username": "me", "password": "secret"}}
    (home / ".docker/config.json").write_text(json.dumps({"auths": auths}))


def test_a_token_is_asked_for_with_the_login_and_only_over_tls(tmp_path: Path) -> None:
    write_login(tmp_path)
    sent: list[tuple[str, str]] = []

    def registry_with(realm: str) -> Registry:
        def send(
            method: str, url: str, headers: Mapping[str, str], data: bytes | IO[bytes] | None
        ) -> Answer:
            authorization = headers.get("Authorization", "")
            sent.append((url, authorization))
            if url.startswith(realm):
                return Answer(200, {}, b'{"token": "T"}')
            if authorization != "Bearer T":
                challenge = f'Bearer realm="{realm}",service="s"'
                return Answer(401, {"www-authenticate": challenge}, b"")
            return Answer(202 if method == "POST" else 200, {"location": "/v2/x"}, b"{}")

        return Registry("registry.example.org", environment={"HOME": str(tmp_path)}, send=send)

    registry_with("https://login.example.org/token").check("me/roost")
    asked = [url for url, authorization in sent if authorization.startswith("Basic ")]
    assert len(asked) == 1
    assert asked[0].startswith("https://login.example.org/token?service=s&scope=repository%3Ame")
    sent.clear()
    with pytest.raises(RegistryError, match="isn't https"):
        registry_with("http://login.example.org/token").check("me/roost")
    assert not [authorization for _, authorization in sent if authorization]


@given(
    location=st.sampled_from(
        [
            "/v2/x?state=a",
            "http://registry.example.org/v2/x?state=a",
            "HTTP://Registry.Example.org/v2/x",
            "https://registry.example.org/v2/x",
            "//registry.example.org/v2/x",
            "http://registry.example.org:80/v2/x",
            "http://elsewhere.example.org/v2/x",
            "https://elsewhere.example.org/v2/x",
            "ftp://registry.example.org/v2/x",
        ]
    ),
    challenge=st.sampled_from(["Basic", 'Bearer realm="https://registry.example.org/token"']),
)
def test_a_login_goes_to_the_registry_alone_and_never_in_clear_text(
    location: str, challenge: str
) -> None:
    sent: list[tuple[str, str]] = []

    def send(
        method: str, url: str, headers: Mapping[str, str], data: bytes | IO[bytes] | None
    ) -> Answer:
        authorization = headers.get("Authorization", "")
        sent.append((url, authorization))
        if url.startswith("https://registry.example.org/token"):
            return Answer(200, {}, b'{"token": "T"}')
        if not authorization:
            return Answer(401, {"www-authenticate": challenge}, b"")
        return Answer(202 if method == "POST" else 200, {"location": location}, b"{}")

    with tempfile.TemporaryDirectory() as home:
        write_login(Path(home))
        Registry("registry.example.org", environment={"HOME": home}, send=send).check("me/roost")
    told = {url.lower() for url, authorization in sent if authorization}
    assert all(url.startswith("https://registry.example.org/") for url in told)
    # What takes uploads at the registry, behind a proxy too, still gets the login.
    is_of_registry = "registry.example.org/" in location.lower() and "ftp" not in location
    last_url, last_authorization = sent[-1]
    if is_of_registry or location.startswith("/v2/"):
        assert last_url.lower().startswith("https://registry.example.org/v2/x")
        assert last_authorization


def test_an_upload_at_no_address_is_refused_in_words() -> None:
    answers = {"POST": Answer(202, {"location": "https://[registry/v2/x"}, b"")}
    registry = Registry(
        "registry.example.org",
        environment={},
        send=lambda method, *_: answers.get(method, Answer(200, {}, b"{}")),
    )
    with pytest.raises(RegistryError, match=r"https://\[registry/v2/x.*which is no address"):
        registry.check("me/roost")


@pytest.mark.parametrize("host", ["registry.example.org", "registry.example.org:5000"])
def test_no_login_goes_to_another_machine_without_tls(host: str, tmp_path: Path) -> None:
    write_login(tmp_path, host)
    sent: list[Mapping[str, str]] = []

    def send(
        _method: str, _url: str, headers: Mapping[str, str], _data: bytes | IO[bytes] | None
    ) -> Answer:
        sent.append(headers)
        return Answer(401, {"www-authenticate": "Basic"}, b"")

    registry = Registry(host, plain_http=True, environment={"HOME": str(tmp_path)}, send=send)
    with pytest.raises(RegistryError, match="in clear text"):
        registry.check("me/roost")
    assert not any("Authorization" in headers for headers in sent)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["auths", "credHelpers", "auth", "r.example.org", "username"]),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_file_of_logins_is_read_or_refused_in_words(settings: Any) -> None:
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / ".docker/config.json"
        path.parent.mkdir()
        path.write_text(json.dumps(settings))
        registry = Registry(
            "r.example.org",
            environment={"HOME": home},
            send=lambda *_: Answer(401, {"www-authenticate": "Basic"}, b""),
        )
        with pytest.raises(RegistryError, match=r"config\.json|docker login|docker-credential"):
            registry.check("me/roost")


def test_no_file_of_logins_is_no_login(tmp_path: Path) -> None:
    assert find_login("r.example.org", {"HOME": str(tmp_path)}) is None


HOST: Final = "r.example.org"
# What one file of logins may hold, and what is said of it; "": nothing is wrong with it.
FAULTS: Final = {
    "{}": "",
    "not JSON": "it can't be read",
    json.dumps({"auths": {HOST: {"auth": "%"}}}): "isn't base64",
    json.dumps({"credsStore": "is-not-here"}): "docker-credential-is-not-here",
    json.dumps({"credHelpers": {HOST: "is-not-here"}}): "docker-credential-is-not-here",
}


@given(
    st.lists(st.sampled_from(sorted(FAULTS)), min_size=1, max_size=4), st.none() | st.integers(0, 4)
)
def test_a_login_is_found_though_another_file_gives_none(
    faulty: list[str], login_at: int | None
) -> None:
    texts = list(faulty)
    if login_at is not None:
        texts.insert(login_at, json.dumps({"auths": {HOST: {"username": "me", "password": "p"}}}))
    with tempfile.TemporaryDirectory() as home:
        environment = {
            "HOME": home,
            "REGISTRY_AUTH_FILE": f"{home}/named.json",
            "XDG_RUNTIME_DIR": f"{home}/run",
        }
        for path, text in zip(login_files(environment), texts, strict=False):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        said = next(filter(None, (FAULTS[text] for text in faulty)), "")
        if login_at is not None:
            found = find_login(HOST, environment)
            assert found is not None
            assert found.user == "me"
        elif said:
            with pytest.raises(LoginError, match=said):
                find_login(HOST, environment)
        else:
            assert find_login(HOST, environment) is None


def test_the_chart_is_packed_alike_each_time(tmp_path: Path) -> None:
    for number in ("1", "2"):
        tgz, archive = tmp_path / f"{number}.tgz", tmp_path / f"{number}.tar"
        package_chart(ROOT / "chart", tgz, archive, EPOCH_SECONDS)
    for suffix in ("tgz", "tar"):
        first, second = tmp_path / f"1.{suffix}", tmp_path / f"2.{suffix}"
        assert first.read_bytes() == second.read_bytes()
    with oci.Archive(archive) as read:
        config, content = read.parts(read.root)
        about = yaml.safe_load((ROOT / "chart/Chart.yaml").read_text())
        assert json.loads(read.read(config)) == about
        assert read.read(content) == tgz.read_bytes()
    with tarfile.open(tgz) as tar:
        names = tar.getnames()
    assert names[0] == "roost/Chart.yaml"
    assert {"roost/values.yaml", "roost/values.schema.json", "roost/templates/NOTES.txt"} <= {
        *names
    }


def go_program(version: str, modules: str) -> bytes:
    """The part of a program that Go's linker writes of its making."""
    written = b"\x7fELF" + b"\xff Go buildinf:\x08\x02" + bytes(16)
    for text in (version, modules):
        length = len(text)
        written += bytes([length]) if length < 128 else bytes([length & 127 | 128, length >> 7])
        written += text.encode()
    return written + b"\x00"


def test_a_list_of_contents_names_each_package_in_its_last_version(tmp_path: Path) -> None:
    site = "/opt/roost/lib/python3.13/site-packages"
    status = b"Package: python3\nStatus: install ok installed\nVersion: 3.13.5-1\n\n"
    gone = b"Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n\n"
    license_line = "License-Expression: BSD-3-Clause\n"
    metadata = f"Metadata-Version: 2.4\nName: Click_Plugins\nVersion: 8.3\n{license_line}\nText\n"
    modules = "path\tp\nmod\tp\t(devel)\ndep\texample.org/a\tv1.2.0\th1:x\ndep\tb\tv0\n=>\tc\tv2\n"
    image = make_image(
        files={
            "/var/lib/dpkg/status": status + gone,
            f"{site}/click_plugins-8.3.dist-info/METADATA": metadata.encode(),
            "/usr/lib/os-release": b'NAME="Debian"\nID=debian\nVERSION_ID="13"\n',
            "/pause": go_program("go1.26.8", "M" * 16 + modules + "M" * 16),
        }
    )
    path = tmp_path / "image.tar"
    write_archive(image, "roost:1", path)
    packages = sbom.packages_of(path)
    assert packages == [
        sbom.Package("deb", "python3", "3.13.5-1", "", "debian-13"),
        sbom.Package("golang", "c", "v2", ""),
        sbom.Package("golang", "example.org/a", "v1.2.0", ""),
        sbom.Package("golang", "stdlib", "1.26.8", "BSD-3-Clause"),
        sbom.Package("pypi", "click-plugins", "8.3", "BSD-3-Clause"),
    ]
    document = json.loads(sbom.spdx_of("roost", "1.0.0", image.digest, packages))
    locators = [
        package["externalRefs"][0]["referenceLocator"] for package in document["packages"][1:]
    ]
    assert locators[0] == "pkg:deb/debian/python3@3.13.5-1?distro=debian-13"
    assert locators[2:] == [
        "pkg:golang/example.org/a@v1.2.0",
        "pkg:golang/stdlib@1.26.8",
        "pkg:pypi/click-plugins@8.3",
    ]


@given(st.binary(max_size=60), st.sampled_from([b"\x00", b"\x02"]))
def test_what_only_looks_like_a_program_of_go_is_passed_over(rest: bytes, flags: bytes) -> None:
    program = b"\xff Go buildinf:\x08" + flags + bytes(16) + rest
    for package in sbom._go(program):
        assert rest[1:].startswith(f"go{package.version}".encode())


def test_pythons_own_image_says_which_python_it_has() -> None:
    config = json.dumps({"config": {"Env": ["PATH=/bin", "PYTHON_VERSION=3.13.9"]}}).encode()
    assert [package.version for package in sbom._interpreter(config)] == ["3.13.9"]
    assert list(sbom._interpreter(b"{}")) == []


FAKE_ENGINE: Final = """#!/bin/sh
echo "$@" >>"$LOG"
if [ "$1" = save ]; then cp "$SAVED/${4##*-}.tar" "$3"; fi
"""


@pytest.mark.parametrize("built_for", [("amd64", "arm64"), ("amd64", "amd64")])
def test_an_engine_builds_each_platform_or_is_refused(
    built_for: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for wanted, built in zip(("amd64", "arm64"), built_for, strict=True):
        layers = [b"tar of " + wanted.encode()]
        (tmp_path / f"{wanted}.tar").write_bytes(
            saved(layers, [False], is_old=True, architecture=built)
        )
    put_program(tmp_path, "docker", FAKE_ENGINE, monkeypatch)
    monkeypatch.setenv("SAVED", str(tmp_path))
    assert find_engine() == "docker"
    dist = tmp_path / "dist"
    dist.mkdir()
    platforms = ("linux/amd64", "linux/arm64")
    if built_for[1] == "amd64":
        with pytest.raises(BuildError, match="--platform linux/arm64: docker built roost for"):
            build_images(tmp_path, dist, "1.0.0", "docker", platforms)
        return
    parts = build_images(tmp_path, dist, "1.0.0", "docker", platforms)
    assert {name: part.platforms for name, part in parts.items()} == dict.fromkeys(
        ("roost", "roost-lab"), "linux/amd64,linux/arm64"
    )
    assert {path.name for path in dist.iterdir()} == {part.file for part in parts.values()}
    builds = [line for line in (tmp_path / "log").read_text().splitlines() if "build" in line]
    assert builds[0].startswith(
        "build --platform linux/amd64 --target roost --tag localhost/roost:"
    )


FAKE_BUILDX: Final = """#!/bin/sh
echo "$@" >>"$LOG"
for option; do
  case $option in type=oci,dest=*) path=${option#*dest=}; cp "$SAVED" "${path%%,*}" ;; esac
done
"""


def test_what_docker_says_of_its_build_stays_in_the_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved_image = by_buildkit(tmp_path)
    put_program(tmp_path, "docker", FAKE_BUILDX, monkeypatch)
    monkeypatch.setenv("SAVED", str(saved_image))
    dist = tmp_path / "dist"
    dist.mkdir()
    wanted = ("linux/amd64", "linux/arm64")
    parts = build_images(tmp_path, dist, "1.0.0", "buildx", wanted)
    for name, part in parts.items():
        assert part.platforms == ",".join(wanted)
        # Its layers aren't tars.
        assert sbom.packages_of(dist / part.file) == []
        shelf = Shelf()
        registry = Registry("registry.example.org", environment={}, send=shelf.send)
        with oci.Archive(dist / part.file) as archive:
            archive.check()
            assert registry.push(archive, f"me/{name}", "1") == part.digest
        assert any(b"slsa.dev/provenance" in blob for blob in shelf.blobs.values())
    for line, name in zip((tmp_path / "log").read_text().splitlines(), parts, strict=True):
        assert line.startswith(f"buildx build --platform {','.join(wanted)} --target {name} ")
        assert "--provenance=mode=max" in line


def put_program(folder: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program before all others; its LOG is the folder's file log."""
    program = folder / name
    program.write_text(text)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("LOG", str(folder / "log"))


FAKE_COSIGN: Final = """#!/bin/sh
echo "$@" >>"$LOG"
echo of cosign
exit ${STATUS:-0}
"""


@pytest.mark.parametrize("status", [0, 1, None])
def test_what_is_pushed_is_signed_and_told_to_a_workflow(
    status: int | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """status: cosign's; None: it isn't there."""
    dist, outputs = tmp_path / "dist", tmp_path / "outputs"
    record = small_release(dist)
    shelf = Shelf()
    put_program(tmp_path, "cosign" if status is not None else "other", FAKE_COSIGN, monkeypatch)
    monkeypatch.setenv("STATUS", str(status))
    monkeypatch.setenv("ROOST_REGISTRY", "registry.example.org/Me")
    monkeypatch.setenv("GITHUB_OUTPUT", str(outputs))
    monkeypatch.setattr(
        publish, "Registry", lambda host, **_: Registry(host, environment={}, send=shelf.send)
    )
    code = main(["--dist", str(dist), "--sign"])
    printed = capfd.readouterr()
    if status is None:
        assert (code, printed.out, shelf.requests) == (1, "", [])
        assert "no cosign here" in printed.err
        return
    if status == 1:
        assert (code, printed.out, outputs.exists()) == (1, "", False)
        assert "cosign sign: status 1. The release is pushed, and not all of it" in printed.err
        return
    assert code == 0, printed.err
    pushed = {
        name: (f"registry.example.org/me/{path}", record.parts[name].digest)
        for name, path in REPOSITORIES.items()
    }
    values = yaml.safe_load(printed.out)
    assert values["image"] == dict(zip(("name", "digest"), pushed["roost"], strict=True))
    signed = [f"sign --yes {where}@{digest}" for where, digest in pushed.values()]
    attest = "attest --yes --type spdxjson --predicate"
    for name in ("roost", "roost-lab"):
        listed = f"{dist}/{name}-{record.version}.spdx.json"
        signed.append(f"{attest} {listed} {'@'.join(pushed[name])}")
    assert sorted((tmp_path / "log").read_text().splitlines()) == sorted(signed)
    # As the workflow's later steps name them.
    assert dict(line.split("=") for line in outputs.read_text().splitlines()) == {
        **{name: where for name, (where, _) in pushed.items()},
        **{f"{name}-digest": digest for name, (_, digest) in pushed.items()},
    }


def test_without_an_address_it_says_where_one_may_stand(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(publish, "read_addresses", lambda _: Addresses())
    assert main([]) == 2
    said = capsys.readouterr().err
    assert "REGISTRY: found none. Name it, such as registry.example.org/me" in said
    assert "release.toml" in said


OURS: Final = {"version": "0.1.0", "commit": "abc", "changes": "", "parts": {}, "from": "before"}
# What a folder may hold, and whether it is a release of ours.
FOLDERS: Final[list[tuple[dict[str, str], bool]]] = [
    ({}, True),
    ({"release.json": json.dumps(OURS), "roost.tgz": "1"}, True),
    ({"thesis.txt": "years"}, False),
    ({"release.json": "{}"}, False),
    ({"release.json": "[]"}, False),
    ({"release.json": '"version, commit, parts"'}, False),
    ({"release.json": "half of"}, False),
    ({"release.json": '{"version": "1", "channel": "stable"}', "thesis.txt": "years"}, False),
]


class HasBegunError(Exception):
    """A build got as far as its source."""


@pytest.mark.parametrize(("files", "is_ours"), FOLDERS)
def test_only_an_empty_folder_or_a_release_is_replaced(
    files: dict[str, str],
    is_ours: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def begin(*_: object) -> None:
        raise HasBegunError

    monkeypatch.setattr(release, "write_source", begin)
    monkeypatch.setattr(release, "checkout_state", lambda: ("abc", ""))
    dist = tmp_path / "dist"
    dist.mkdir()
    half = tmp_path / "half"
    half.mkdir()
    (half / "new").write_text("1")
    for name, text in files.items():
        (dist / name).write_text(text)
    if is_ours:
        with pytest.raises(HasBegunError):
            release.main(["--output", str(dist)])
        release._replace(dist, half)
        assert [path.name for path in dist.iterdir()] == ["new"]
        return
    assert release.main(["--output", str(dist)]) == 1
    assert f"{dist}: it is no release" in capsys.readouterr().err
    # It may have come while the release was built.
    with pytest.raises(BuildError, match="Name a folder that is empty"):
        release._replace(dist, half)
    assert {path.name: path.read_text() for path in dist.iterdir()} == files


def test_a_file_is_no_folder_for_a_release_and_a_missing_one_is_made(tmp_path: Path) -> None:
    named = tmp_path / "dist"
    named.write_text("thesis")
    with pytest.raises(BuildError, match="it is no release"):
        release.build(named)
    assert named.read_text() == "thesis"
    half = tmp_path / "half"
    half.mkdir()
    release._replace(tmp_path / "new", half)
    assert (tmp_path / "new").is_dir()


def test_the_page_names_refusals_as_they_are_said() -> None:
    page = (ROOT / "docs/how-to/publish.md").read_text(encoding="utf-8")
    table = page.partition("## If it is refused")[2]
    said = [text.strip(" …") for text in re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)]
    assert len(said) >= 7
    sources = "".join(
        (ROOT / "tools/release" / name).read_text(encoding="utf-8")
        for name in ("../registry.py", "publish.py", "build.py", "checkout.py")
    )
    # A sentence goes over several literals.
    joined = re.sub(r'"\s*\n\s*f?"', "", sources)
    assert [text for text in said if text not in joined] == []


def test_the_command_says_what_it_does_wherever_somebody_stands(tmp_path: Path) -> None:
    other = tmp_path / "tools/release"
    other.mkdir(parents=True)
    for folder in (other.parent, other):
        (folder / "__init__.py").write_text("")
    (other / "publish.py").write_text("print('of another checkout')")
    done = subprocess.run(
        [str(ROOT / "tools/publish"), "--help"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "usage: tools/publish" in done.stdout


def test_docker_without_its_daemon_builds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.image.missing_parts", lambda: ["root"])
    put_program(tmp_path, "podman", "#!/bin/sh\n", monkeypatch)
    put_program(tmp_path, "docker", "#!/bin/sh\nexit 1\n", monkeypatch)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_engine() == "podman"
    (tmp_path / "podman").unlink()
    with pytest.raises(BuildError, match="Install or start one of them"):
        find_engine()


def test_media_types_are_those_of_the_image_specification() -> None:
    """The stand-in for a registry takes them from the code that is tested."""
    assert [oci.MANIFEST_TYPE, oci.INDEX_TYPE, oci.CONFIG_TYPE, oci.LAYER_TYPE] == [
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.config.v1+json",
        "application/vnd.oci.image.layer.v1.tar+gzip",
    ]
