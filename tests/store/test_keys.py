"""Where keys are found, in which order, and how they are stored."""

from __future__ import annotations

import json
import os
import stat
import sys
import traceback
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mull.auth.secret import Secret
from mull.auth.variables import KeyPlace
from mull.neutral.errors import ConfigError
from mull.store import vault as vaults
from mull.store.keys import KEYS_FILE, Keys
from mull.store.vault import SystemVault

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
CANARY = "canary-77c0"


class FakeVault:
    def __init__(self, works=True):
        self.works, self.held = works, {}

    def keep(self, name, key):
        if self.works:
            self.held[name] = key
        return self.works

    def find(self, name):
        return self.held.get(name)

    def forget(self, name):
        self.held.pop(name, None)


@pytest.fixture
def make(tmp_path):
    def make(vault=None, **environ):
        return Keys(tmp_path, environ, vault or FakeVault(works=False))

    return make


def found(keys, *words, **named):
    hit = keys.find(*words, **named)
    return None if hit is None else (hit.key.reveal(), hit.place.kind, hit.place.variable)


def test_the_order_of_places(make):
    keys = make(A_API_KEY="a", B_API_KEY="b", MINE="m")
    keys.keep("acme", Secret("s"))
    variables, own = ["A_API_KEY", "B_API_KEY"], ["MINE"]
    look = {"given": "g", "own": own}
    assert found(keys, "acme", variables, **look) == ("g", "argument", None)
    assert found(keys, "acme", variables, own=own) == ("a", "environment", "A_API_KEY")
    keys = make(A_API_KEY="", B_API_KEY="b", MINE="m")
    assert found(keys, "acme", variables, own=own) == ("b", "environment", "B_API_KEY")
    keys = make(MINE="m")
    assert found(keys, "acme", variables, own=own) == ("s", "file", None)
    keys.delete("acme")
    assert found(keys, "acme", variables, own=own) == ("m", "environment", "MINE")
    assert found(make(), "acme", variables, own=own) is None


def test_all_places_are_listed_the_one_in_use_first_and_none_twice(make):
    keys = make(A_API_KEY="a", MINE="m")
    keys.keep("acme", Secret("s"))
    assert keys.places("acme", ["A_API_KEY"], own=["MINE", "A_API_KEY"]) == [
        KeyPlace("environment", "A_API_KEY"),
        KeyPlace("file"),
        KeyPlace("environment", "MINE"),
    ]


def test_a_login_goes_before_the_variable_that_others_use_too(make):
    keys = make(GITHUB_TOKEN="ghp_other")
    assert found(keys, "github-copilot", ["GITHUB_TOKEN"])[0] == "ghp_other"
    keys.keep("github-copilot", Secret("gho_login"))
    assert found(keys, "github-copilot", ["GITHUB_TOKEN"]) == ("gho_login", "file", None)


def test_parts_of_an_address_are_no_keys(make):
    keys = make(AZURE_RESOURCE_NAME="r", AZURE_API_KEY="k")
    assert found(keys, "azure", ["AZURE_RESOURCE_NAME", "AZURE_API_KEY"])[0] == "k"
    assert found(make(AZURE_RESOURCE_NAME="r"), "azure", ["AZURE_RESOURCE_NAME", "X_KEY"]) is None


@pytest.mark.parametrize("look", [{"given": f"{CANARY} x"}, {"variables": ["X_API_KEY"]}])
def test_a_place_that_holds_no_key_is_named_and_not_passed_over(make, look):
    keys = make(X_API_KEY=f"{CANARY}\nx")
    keys.keep("acme", Secret("s"))
    with pytest.raises(ConfigError) as caught:
        keys.find("acme", **look)
    assert str(caught.value).startswith(("X_API_KEY contains", "the key that was given contains"))
    assert CANARY not in str(caught.value)


def test_the_file_is_read_only_when_it_is_needed(make):
    keys = make(X_API_KEY="x")
    keys.path.write_bytes(b"damaged")
    keys.path.chmod(0o600)
    assert found(keys, "acme", ["X_API_KEY"])[0] == "x"
    with pytest.raises(ConfigError):
        keys.find("acme")


@posix
def test_the_file_is_the_users_alone(make):
    keys = make()
    assert keys.keep("OpenAI", Secret("s")) == "file"
    assert stat.S_IMODE(keys.path.stat().st_mode) == 0o600
    assert json.loads(keys.path.read_bytes()) == {"version": 1, "keys": {"openai": "s"}}
    assert os.listdir(keys.path.parent) == [KEYS_FILE]


@posix
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666, 0o610])
def test_a_file_that_others_can_open_is_refused_with_the_way_to_fix_it(make, mode):
    keys = make()
    keys.keep("openai", Secret(CANARY))
    keys.path.chmod(mode)
    for act in (
        lambda: keys.find("openai"),
        keys.stored,
        lambda: keys.keep("openai", Secret("new")),
        lambda: keys.delete("openai"),
    ):
        with pytest.raises(ConfigError) as caught:
            act()
        assert str(caught.value) == (
            f"{keys.path} can be read or changed by other users (mode {mode:03o}), so its keys "
            f"are not used: run `chmod 600 {keys.path}`"
        )
    keys.path.chmod(0o600)
    assert found(keys, "openai")[0] == CANARY


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        f'{{"version":1,"keys":{{"a":"{CANARY}"}}'.encode(),
        f'{{"version":1,"keys":"{CANARY}"}}'.encode(),
        f'{{"version":1,"keys":{{"a":["{CANARY}"]}}}}'.encode(),
        f'{{"version":1,"{CANARY}":1,"keys":{{}}}}'.encode(),
        f'{{"version":2,"keys":{{"a":"{CANARY}"}}}}'.encode(),
    ],
)
def test_a_damaged_file_is_told_of_and_left_alone(make, data):
    keys = make()
    keys.path.write_bytes(data)
    keys.path.chmod(0o600)
    with pytest.raises(ConfigError) as caught:
        keys.keep("a", Secret("b"))
    assert "is damaged or from another version of mull: move it away" in str(caught.value)
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    assert keys.path.read_bytes() == data


def test_a_stored_key_that_is_empty_is_told_of(make):
    keys = make()
    keys.path.write_bytes(b'{"version":1,"keys":{"acme":""}}')
    keys.path.chmod(0o600)
    with pytest.raises(ConfigError, match=r"the key of acme in .* is empty"):
        keys.find("acme")


def test_deleting(make):
    keys = make()
    keys.keep("a", Secret("1"))
    keys.keep("b", Secret("2"))
    assert keys.delete("A") == "file"
    assert keys.stored() == {"b": "file"}
    with pytest.raises(ConfigError, match="no key is stored for a: `mull keys list`"):
        keys.delete("a")


def test_a_keyring_holds_the_key_and_the_file_only_its_name(make):
    vault = FakeVault()
    keys = make(vault)
    assert keys.keep("acme", Secret(CANARY)) == "keyring"
    assert CANARY.encode() not in keys.path.read_bytes()
    assert keys.stored() == {"acme": "keyring"}
    assert found(keys, "acme") == (CANARY, "keyring", None)
    assert keys.delete("acme") == "keyring"
    assert vault.held == {}


def test_a_key_moves_between_keyring_and_file_and_stays_in_one(make):
    vault = FakeVault(works=False)
    keys = make(vault)
    keys.keep("acme", Secret("1"))
    vault.works = True
    keys.keep("acme", Secret("2"))
    assert json.loads(keys.path.read_bytes())["keys"] == {"acme": None}
    assert keys.keep("acme", Secret("3"), in_file=True) == "file"
    assert vault.held == {}
    assert found(keys, "acme") == ("3", "file", None)


def test_a_key_that_is_gone_from_the_keyring_is_looked_for_further_on(make):
    vault = FakeVault()
    keys = make(vault, MINE="m")
    keys.keep("acme", Secret("1"))
    vault.held.clear()
    assert found(keys, "acme", own=["MINE"])[0] == "m"


NAMES = st.sampled_from(["a", "b", "c"])
ACTS = st.one_of(
    st.tuples(st.just("keep"), NAMES, st.booleans(), st.booleans()),
    st.tuples(st.just("delete"), NAMES, st.booleans(), st.booleans()),
)


@given(st.lists(ACTS, max_size=12))
def test_what_is_stored_is_what_was_stored_last_wherever_it_lies(tmp_path_factory, acts):
    vault = FakeVault()
    keys, wanted = Keys(tmp_path_factory.mktemp("k"), {}, vault), {}
    for number, (act, name, works, in_file) in enumerate(acts):
        vault.works = works
        if act == "keep":
            keys.keep(name, Secret(str(number)), in_file=in_file)
            wanted[name] = str(number)
        elif name in wanted:
            keys.delete(name)
            del wanted[name]
    assert set(keys.stored()) == set(wanted)
    assert {name: found(keys, name)[0] for name in wanted} == wanted
    assert set(vault.held) == {n for n, where in keys.stored().items() if where == "keyring"}


# the system's keyring


class Backend:
    def __init__(self, priority=5, broken=()):
        self.priority, self.broken, self.held = priority, broken, {}

    def _check(self, act):
        if act in self.broken:
            raise RuntimeError(f"locked {CANARY}")

    def set_password(self, service, name, key):
        self._check("set")
        self.held[service, name] = key

    def get_password(self, service, name):
        self._check("get")
        return self.held.get((service, name))

    def delete_password(self, service, name):
        self._check("delete")
        del self.held[service, name]


def use(monkeypatch, backend):
    module = SimpleNamespace(get_keyring=lambda: backend)
    monkeypatch.setattr(vaults, "import_module", lambda name: module)
    return backend


def test_the_keyring_keeps_gives_and_forgets(monkeypatch):
    backend = use(monkeypatch, Backend())
    vault = SystemVault()
    assert vault.keep("acme", Secret("k"))
    assert backend.held == {("mull", "acme"): "k"}
    assert vault.find("acme") == Secret("k")
    vault.forget("acme")
    vault.forget("acme")
    assert vault.find("acme") is None


@pytest.mark.parametrize("backend", [Backend(0), Backend(0.5), Backend(5, ("set",)), object()])
def test_a_keyring_that_keeps_nothing_safe_is_not_used(monkeypatch, backend):
    use(monkeypatch, backend)
    assert SystemVault().keep("acme", Secret("k")) is False


def test_a_keyring_that_forgets_at_once_is_not_used(monkeypatch):
    backend = use(monkeypatch, Backend())
    backend.set_password = lambda *words: None
    assert SystemVault().keep("acme", Secret("k")) is False


def test_no_keyring_package_is_no_keyring(monkeypatch):
    monkeypatch.setitem(sys.modules, "keyring", None)
    vault = SystemVault()
    assert vault.keep("acme", Secret("k")) is False
    assert vault.find("acme") is None
    vault.forget("acme")


@pytest.mark.parametrize(("act", "told"), [("find", "return"), ("forget", "delete")])
def test_a_locked_keyring_is_told_of_without_its_own_words(monkeypatch, act, told):
    use(monkeypatch, Backend(5, ("get",)))
    with pytest.raises(ConfigError, match=rf"keyring did not {told} the key of acme") as caught:
        getattr(SystemVault(), act)("acme")
    assert "RuntimeError" in str(caught.value)
    assert CANARY not in str(caught.value)
