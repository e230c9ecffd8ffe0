"""The way to a target: which key, which headers, which address, and what is missing."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from conversations import target as made_up
from mull.auth.secret import Secret
from mull.auth.static import key_headers
from mull.catalog.resolve import resolve
from mull.client.access import Access, access, missing_key, request_headers
from mull.neutral.errors import ConfigError
from mull.neutral.messages import user
from mull.neutral.request import WireRequest
from mull.store.config import Config, ProviderConfig, load_config
from mull.store.keys import Keys
from mull.store.vault import SystemVault

CANARY = "canary-1d2e"
ACME = replace(made_up(), key_env=("ACME_API_KEY",))
WIRE = WireRequest("/chat", b"{}", {"Content-Type": "application/json", "X-Beta": "1"})


class NoVault(SystemVault):
    def keep(self, name, key):
        return False


@pytest.fixture
def way(tmp_path):
    def way(target=ACME, config=None, stored=None, given=None, **environ):
        keys = Keys(tmp_path, environ, NoVault())
        if stored:
            keys.keep(target.provider, Secret(stored))
        return access(target, config or Config(), keys, **(given or {}))

    return way


def said(**words):
    return Config(providers={"acme": ProviderConfig(**words)})


def test_the_key_in_the_order_of_places(way):
    config = said(key_env=("MINE",))
    for key, found in [
        ({"given": {"key": "flag"}, "ACME_API_KEY": "env", "MINE": "own"}, "flag"),
        ({"ACME_API_KEY": "env", "stored": "kept", "MINE": "own"}, "env"),
        ({"stored": "kept", "MINE": "own"}, "kept"),
    ]:
        assert way(config=config, **key).key == Secret(found)


def test_the_config_files_variable_comes_last(way):
    assert way(config=said(key_env=("MINE",)), MINE="own").key == Secret("own")
    assert way().key is None


def test_the_address_in_the_order_of_places(way):
    assert way().base_url == "https://acme.example/v1"
    config = said(base_url="https://own.example/v1")
    assert way(config=config).base_url == "https://own.example/v1"
    flag = {"base_url": "http://127.0.0.1:8080/v1/"}
    assert way(config=config, given=flag).base_url == "http://127.0.0.1:8080/v1"


def test_no_address_is_an_error_that_says_where_to_give_one(way):
    with pytest.raises(ConfigError) as caught:
        way(replace(ACME, endpoint=None))
    assert str(caught.value) == (
        "no address is known for Acme: give the whole address with --base-url, "
        "or as base_url in config.toml"
    )


AZURE = "https://${AZURE_RESOURCE_NAME}.services.ai.azure.com/models"
VERTEX = "https://${GOOGLE_VERTEX_ENDPOINT}/v1/projects/${P}/locations/${L}/endpoints/openapi"


@pytest.mark.parametrize(
    ("template", "environ", "filled"),
    [
        (
            AZURE,
            {"AZURE_RESOURCE_NAME": " res \n"},
            "https://res.services.ai.azure.com/models",
        ),
        (
            VERTEX,
            {"GOOGLE_VERTEX_ENDPOINT": "aiplatform.googleapis.com", "P": "p", "L": "global"},
            "https://aiplatform.googleapis.com/v1/projects/p/locations/global/endpoints/openapi",
        ),
        ("https://bedrock.${R}.aws/v1", {"R": "eu-1"}, "https://bedrock.eu-1.aws/v1"),
        ("https://${HOST}/v1", {"HOST": "https://x.databricks.com"}, "https://x.databricks.com/v1"),
        ("${BASE}/ai", {"BASE": "https://neon.example"}, "https://neon.example/ai"),
    ],
)
def test_addresses_are_filled_from_the_environment(way, template, environ, filled):
    assert way(replace(ACME, endpoint=template), **environ).base_url == filled


def test_a_missing_variable_is_named_with_the_address_it_belongs_to(way):
    with pytest.raises(ConfigError) as caught:
        way(replace(ACME, endpoint=AZURE), AZURE_RESOURCE_NAME="")
    assert str(caught.value) == (
        f'the address of Acme, "{AZURE}" needs AZURE_RESOURCE_NAME in the environment: '
        "set that, or give the whole address with --base-url, "
        "or as base_url in config.toml"
    )
    with pytest.raises(ConfigError, match="needs GOOGLE_VERTEX_ENDPOINT and L in the env"):
        way(replace(ACME, endpoint=VERTEX), P="p")


def test_real_providers_ask_for_their_variables(way):
    for name, variable in [
        ("azure/deepseek-r1", "AZURE_RESOURCE_NAME"),
        ("databricks/x", "DATABRICKS_HOST"),
        ("cloudflare-workers-ai/x", "CLOUDFLARE_ACCOUNT_ID"),
    ]:
        found = resolve(name)
        if found.endpoint and "${" in found.endpoint:
            with pytest.raises(ConfigError, match=f"needs {variable} in"):
                way(found)
            assert "filled.example" in way(found, **{variable: "filled.example"}).base_url
    assert "${DATABRICKS_HOST}" in (resolve("databricks/x").endpoint or "")


@pytest.mark.parametrize("value", ["a b", "x/y z?a", "a\nb", "x/y z"])
def test_a_value_that_makes_no_address_names_the_variable_and_not_the_value(way, value):
    with pytest.raises(ConfigError, match="is not an http or https address; look at R:") as caught:
        way(replace(ACME, endpoint="https://${R}"), R=value)
    assert value not in str(caught.value)


@pytest.mark.parametrize("rest", ["?api-version=1", f"/v1?key={CANARY}", "/v1/?", "/v1#there"])
def test_an_address_that_goes_on_after_its_path_is_told_what_to_do(way, rest):
    told = (
        ": leave that part out, because mull appends paths to the address. Put query parameters"
        " into `query` of [providers.acme] in config.toml, or into `extra_query` in the library"
    )
    with pytest.raises(ConfigError) as caught:
        way(given={"base_url": f"https://host.example{rest}"})
    shown = re.split(r"[?#]", f"https://host.example{rest}")[0]
    assert str(caught.value) == (f'the address of Acme, "{shown}", is followed by a ? or a #{told}')
    with pytest.raises(ConfigError, match="a #; look at R: leave that part out") as caught:
        way(replace(ACME, endpoint="https://${R}"), R=f"host.example{rest}")
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [f"https://me:{CANARY}@host/v1", f"https://{CANARY}@host", f"http://${{R}}@host/{CANARY}"],
)
def test_a_password_in_an_address_is_refused_unseen(way, url):
    with pytest.raises(
        ConfigError, match="contains a user name or password before the @"
    ) as caught:
        way(given={"base_url": url}, R="x")
    assert CANARY not in str(caught.value)
    assert way(given={"base_url": "https://host/@model"}).base_url == "https://host/@model"


def test_headers_of_the_user_go_over_those_of_the_config_file(way):
    config = said(headers={"X-Title": "config", "X-Only": "config", "X-Var": "a ${V} b"})
    found = way(config=config, given={"headers": {"x-title": "flag"}}, V=CANARY)
    assert found.headers == {"x-title": "flag", "x-only": "config", "x-var": f"a {CANARY} b"}
    assert CANARY not in repr(found)


def test_a_header_whose_variable_is_missing(way):
    with pytest.raises(ConfigError) as caught:
        way(config=said(headers={"X-Var": f"{CANARY} ${{GATE_KEY}}"}))
    assert str(caught.value) == (
        "config.toml: a header of acme needs GATE_KEY in the environment: "
        "set that, or leave the header out"
    )


@pytest.mark.parametrize("bad", [f"{CANARY}\r\nx: y", f"{CANARY}é", f"{CANARY}\x00"])
def test_a_header_that_would_break_the_request_is_refused_unseen(way, bad):
    for words in (
        {"given": {"headers": {"X-A": bad}}},
        {"config": said(headers={"X-A": "${V}"}), "V": bad},
    ):
        with pytest.raises(ConfigError, match="the value of X-A holds a line break or") as caught:
            way(**words)
        assert CANARY not in str(caught.value)


def test_a_header_without_a_name_is_refused(way):
    with pytest.raises(ConfigError, match='a header cannot be called "a b"'):
        way(given={"headers": {"a b": "c"}})


def test_all_headers_of_a_request(way):
    found = way(ACME_API_KEY=CANARY, config=said(headers={"X-Beta": "2"}))
    assert request_headers(found, ACME, WIRE) == {
        "content-type": "application/json",
        "authorization": f"Bearer {CANARY}",
        "x-beta": "2",
    }
    assert "authorization" not in request_headers(way(), ACME, WIRE)


def test_the_users_own_authorization_goes_before_the_key(way):
    found = way(ACME_API_KEY="k", given={"headers": {"Authorization": "Basic x"}})
    assert request_headers(found, ACME, WIRE)["authorization"] == "Basic x"


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic", "gemini"])
def test_the_key_goes_where_the_dialect_wants_it(way, dialect):
    at = replace(made_up(dialect=dialect), key_env=("ACME_API_KEY",))
    sent = request_headers(way(at, ACME_API_KEY=CANARY), at, WIRE)
    assert key_headers(at, CANARY).items() <= sent.items()


def test_copilot_gets_its_headers_and_its_login_is_marked(way):
    copilot = resolve("github-copilot/gpt-4.1")
    found = way(copilot, stored="gho_x")
    assert found.login == "github-copilot"
    sent = request_headers(found, copilot, WIRE, [user("hi")])
    assert sent["x-initiator"] == "user"
    assert sent["copilot-integration-id"] == "vscode-chat"
    assert way(ACME).login is None
    assert "x-initiator" not in request_headers(way(), ACME, WIRE, [user("hi")])


def test_what_a_missing_key_is_told_as(way):
    assert missing_key(ACME, way()) == (
        "no API key for Acme: set ACME_API_KEY, or run `mull keys set acme`"
    )
    assert missing_key(ACME, way(ACME_API_KEY="k")) is None
    own = Access("https://x", headers={"authorization": "Basic x"})
    assert missing_key(ACME, own) is None
    local = made_up()
    assert missing_key(local, way(local)) is None
    google = resolve("google/gemini-2.5-pro")
    assert "set GOOGLE_API_KEY, GOOGLE_GENERATIVE_AI_API_KEY or GEMINI_API_KEY, or run" in str(
        missing_key(google, way(google))
    )
    copilot = resolve("github-copilot/gpt-4.1")
    assert missing_key(copilot, way(copilot)) == (
        "GitHub Copilot needs a login: run `mull keys login github-copilot`"
    )


def test_a_repr_shows_no_secret():
    shown = repr(Access("https://x", Secret(CANARY), {"x-key": CANARY}, "a", query={"q": CANARY}))
    assert shown == (
        "Access('https://x', key=***, headers={'x-key': '***'}, query={'q': '***'}, login='a')"
    )


def test_config_toml_gives_all_three(tmp_path, way):
    file = tmp_path / "config.toml"
    file.write_text(
        '[providers.acme]\nbase_url = "https://own.example/v1"\nkey_env = "MINE"\n'
        'headers = { "X-Title" = "t" }\n'
    )
    found = way(config=load_config(file), MINE="m")
    assert found == Access("https://own.example/v1", Secret("m"), {"x-title": "t"})
