"""config.toml: what may stand in it, and where a mistake is said to be."""

import pytest

from mull.neutral.errors import ConfigError
from mull.store.config import Config, ProviderConfig, load_config

WHOLE = """
model = "acme/big/high"

[settings]
reasoning.effort = "HIGH"
reasoning.maxTokens = 50_000
"context.limit" = 9000

[settings.compression]
threshold = 0.5

[providers.Acme]
name = "Acme"
base_url = "https://llm.acme.example/v1/"
key_env = "ACME_KEY"
dialect = "openai-chat"
headers = { "X-Team" = "mull" }

[models."acme/big"]
reasoning = true

[[compat]]
match = { provider = "acme" }
set = { reasoningOut = "reasoning" }
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "config.toml"


def refusal(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    return str(caught.value)


def test_no_file_is_an_empty_one(path):
    assert load_config(path) == Config()
    path.write_bytes(b"")
    assert load_config(path) == Config()


@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_a_whole_file(path, bom):
    path.write_text(bom + WHOLE, encoding="utf-8")
    assert load_config(path) == Config(
        model="acme/big/high",
        settings={
            "reasoning.effort": "high",
            "reasoning.maxTokens": 50_000,
            "context.limit": 9000,
            "compression.threshold": 0.5,
        },
        providers={
            "acme": ProviderConfig(
                base_url="https://llm.acme.example/v1",
                key_env=("ACME_KEY",),
                headers={"X-Team": "mull"},
                dialect="openai-chat",
                name="Acme",
            )
        },
        models={"acme/big": {"reasoning": True}},
        compat=({"match": {"provider": "acme"}, "set": {"reasoningOut": "reasoning"}},),
    )


def test_providers_and_models_go_over_the_catalog_in_its_own_shape(path):
    path.write_text(WHOLE)
    config = load_config(path)
    assert config.overlay == {
        "acme": {
            "name": "Acme",
            "api": "https://llm.acme.example/v1",
            "env": ["ACME_KEY"],
            "models": {
                "big": {"source": "your config.toml", "own_reasoning": True, "reasoning": True}
            },
        }
    }
    assert config.compat_rows[0] == {"match": {"provider": "acme"}, "dialect": "openai-chat"}
    assert config.compat_rows[1:] == config.compat


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'model = "a/b"\n[settings]\nreasoning.ef\tfort = "high"\n',
            "config.toml, line 3, column 14: expected '=' after a key in a key/value pair",
        ),
        (
            '[settings]\n"reasoning.ef\\tfort" = "high"\n',
            'config.toml: there is no setting "reasoning.ef\\tfort": '
            "did you mean reasoning.effort? `mull settings` lists all",
        ),
        (
            '[settings]\nreasoning.format = "fi\teld"\n',
            'config.toml: reasoning.format cannot be "fi\\teld": use field or native',
        ),
        ("model = ", "config.toml, at its end: invalid value"),
        (b"model = '\xff'", "config.toml is not UTF-8 text: save it as UTF-8"),
        (
            '[providers.llama.cpp]\nbase_url = "http://127.0.0.1:8080/v1"',
            'config.toml: providers.llama: "cpp" is unknown: a provider name with a dot'
            ' must be quoted, [providers."llama.cpp"]',
        ),
        ('modle = "a/b"', 'config.toml: "modle" is unknown: did you mean model?'),
        (
            "zzz = 1",
            'config.toml: "zzz" is unknown: use model, settings, providers, models, compat, mcp,'
            " themes, serve, keys or connection",
        ),
        (
            '[reasoning]\neffort = "high"',
            "config.toml: reasoning is at the top level: settings belong under [settings]",
        ),
        (
            "model = 3",
            "config.toml: the model cannot be 3: use a name such as provider/model",
        ),
        ("settings = 3", "config.toml: settings cannot be 3: use a table, [settings]"),
        (
            "[settings]\nreasoning = 3",
            'config.toml: there is no setting "reasoning": '
            "did you mean reasoning.format? `mull settings` lists all",
        ),
        (
            '[providers."a b"]',
            'config.toml: a provider cannot be called "a b": '
            "use letters, digits, '.', '_' and '-'",
        ),
        (
            "[providers.acme]\napi_key = 'x'",
            'config.toml: providers.acme: "api_key" is unknown: API keys do not belong in this'
            " file, name the variable that holds yours with key_env",
        ),
        (
            "[providers.acme]\nbase = 'x'",
            'config.toml: providers.acme: "base" is unknown: did you mean base_url?',
        ),
        (
            "[providers.acme]\nbase_url = 'localhost'",
            "config.toml: providers.acme: base_url cannot be that: "
            "use an address such as https://host/v1",
        ),
        (
            "[providers.acme]\nkey_env = ['A', 3]",
            "config.toml: providers.acme: key_env cannot be a list: "
            "use the name of an environment variable, or a list",
        ),
        (
            "[providers.acme]\ndialect = 'soap'",
            'config.toml: providers.acme: dialect cannot be "soap": '
            "use openai-chat, openai-responses, anthropic, gemini or bedrock-converse",
        ),
        (
            '[providers.acme]\nheaders = { X = "a\\r\\nY: b" }',
            'config.toml: providers.acme: headers."X" cannot be that: use one line of text',
        ),
        (
            "[providers.acme]\nheaders = 'x'",
            'config.toml: providers.acme: headers cannot be "x": '
            'use a table such as { "X-Title" = "mull" }',
        ),
        (
            "[providers.acme]\nname = ''",
            'config.toml: providers.acme: name cannot be "": use one line of text',
        ),
        (
            "[models.big]\nreasoning = true",
            'config.toml: models."big": write the provider too, [models."provider/model"]',
        ),
        ("[compat]", "config.toml: compat cannot be a table: use rows, [[compat]]"),
        ("connection = 3", "config.toml: connection cannot be 3: use a table, [connection]"),
        (
            "[connection]\nprxy = 'x'",
            'config.toml: connection: "prxy" is unknown: did you mean proxy?',
        ),
        (
            "[connection]\nproxy = true",
            "config.toml: connection: proxy cannot be true: use an address such as"
            " http://host:3128, or false",
        ),
        (
            "[connection]\nproxy = 'http://me:canary@host'",
            "config.toml: connection: proxy contains a user name or password before the @, which do"
            " not belong in this file: set HTTPS_PROXY instead",
        ),
        (
            "[connection]\ncert = ['a']",
            "config.toml: connection: cert cannot be a list: use a file, or a list of certificate"
            " and key",
        ),
    ],
)
def test_a_mistake_is_told_on_one_line_with_its_place(path, text, message):
    assert refusal(path, text) == message


def test_the_catalogs_own_checks_name_the_file(path):
    message = refusal(path, "[[compat]]\nset = { reasoningOutt = 'x' }")
    assert message.startswith("config.toml: compat row 1: ")
    message = refusal(path, '[models."a/b"]\nreasoning = "often"')
    assert message.startswith("config.toml: a.models.b: ")


def test_what_the_toml_reader_itself_cannot_take_is_told(path):
    deep = refusal(path, "a = " + "[" * 100_000)
    assert deep == "config.toml is nested too deeply to be read"
    for dotted in ("a" + ".a" * 50_000 + " = 1", "[" + "'a' . " * 50_000 + "b]"):
        assert refusal(path, dotted) == "config.toml is nested too deeply to be read"
    long = refusal(path, "[settings]\ncontext.limit = " + "9" * 5000)
    assert long.startswith("config.toml: Exceeds the limit")


def test_an_unreadable_file_is_told(path):
    path.mkdir()
    with pytest.raises(ConfigError, match=r"^cannot read .*config.toml: "):
        load_config(path)


def test_connections(path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    path.write_text("[connection]\nproxy = false\nverify = '~/ca.pem'\ncert = ['~/a', '/b']\n")
    assert load_config(path).connection == {
        "proxy": False,
        "verify": "/home/me/ca.pem",
        "cert": ("/home/me/a", "/b"),
    }
    path.write_text("[connection]\nhttp_client = 'corp'\n")
    assert load_config(path).connection == {"http_client": "corp"}
