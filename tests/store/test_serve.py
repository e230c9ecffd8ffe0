"""`[serve]` of config.toml: what may stand there, and all mistakes at once."""

from __future__ import annotations

import pytest

from mull.neutral.errors import ConfigError
from mull.store.config import read_config
from mull.store.serve import ServeConfig, ServedModel, ServedTarget, is_local, socket_path


def read(text: str) -> ServeConfig:
    found = read_config(text.encode(), "config.toml").serve
    assert found is not None
    return found


def test_several_targets_of_one_name():
    config = read(
        """
        [serve.models.fast]
        targets = [
          { model = "moonshotai/kimi-k2.5", weight = 3 },
          { model = "openrouter/moonshotai/kimi-k2.5", key_env = "SECOND" },
        ]
        fallback = ["slow", "anthropic/claude-sonnet-4-5"]
        aliases = ["claude-*"]
        system = "Be brief."
        max_tokens = 4000
        settings = { "reasoning.effort" = "low" }

        [serve.models.slow]
        model = "local/smollm2"
        """
    )
    assert config.models["fast"] == ServedModel(
        settings={"reasoning.effort": "low"},
        targets=(
            ServedTarget("moonshotai/kimi-k2.5", weight=3),
            ServedTarget("openrouter/moonshotai/kimi-k2.5", key_env="SECOND"),
        ),
        fallback=("slow", "anthropic/claude-sonnet-4-5"),
        aliases=("claude-*",),
        system="Be brief.",
        max_tokens=4000,
    )
    assert config.models["slow"].upstreams == (ServedTarget("local/smollm2"),)


def test_all_mistakes_are_told_at_once():
    with pytest.raises(ConfigError) as caught:
        read(
            """
            [serve]
            listen = "nowhere"
            workers = 0
            grace = -1
            cert = "/no/such/file.pem"
            colour = "red"
            default = "other"
            hosts = "one"

            [serve.models.a]
            targets = [{ model = "x/y", weight = 0 }, { base_url = "ftp://x", wait = 1 }]
            model = "x/y"
            fallback = ["nobody"]
            max_tokens = "many"

            [serve.models."b c"]
            settings = { "reasoning.effort" = "enormous" }
            """
        )
    lines = str(caught.value).splitlines()
    told = "\n".join(lines)
    for words in (
        'serve: "colour" is unknown',
        'listen cannot be "nowhere"',
        "serve: workers cannot be 0: use a whole number from 1 to 256",
        "serve: grace cannot be -1",
        'serve: cert: the file "/no/such/file.pem" does not exist',
        "serve: cert and key belong together",
        'serve: default cannot be "other"',
        'serve: hosts cannot be "one"',
        "serve.models.a.targets row 1: weight cannot be 0",
        'serve.models.a.targets row 2: "wait" is unknown',
        "serve.models.a.targets row 2: model is missing",
        'serve.models.a.targets row 2: base_url cannot be "ftp://x"',
        "serve.models.a: model belongs into the rows of targets",
        'serve.models.a: max_tokens cannot be "many"',
        "serve.models.b c: a name has no blanks",
        "serve.models.b c: model is missing",
        "serve.models.b c: reasoning.effort",
    ):
        assert words in told, words
    assert all(line.startswith(("config.toml: serve", "listen cannot")) for line in lines)


def test_a_fallback_is_served_here_or_a_model():
    with pytest.raises(ConfigError, match='fallback "nobody" is no model served here'):
        read('[serve.models.a]\nmodel = "x/y"\nfallback = ["nobody"]')


@pytest.mark.parametrize(
    ("listen", "local", "path"),
    [
        ("127.0.0.1:80", True, None),
        ("[::1]:80", True, None),
        ("localhost:80", True, None),
        ("0.0.0.0:80", False, None),
        ("unix:/run/mull.sock", True, "/run/mull.sock"),
    ],
)
def test_where_it_listens(listen, local, path):
    config = read(f'[serve]\nlisten = "{listen}"')
    assert is_local(config.listen) is local
    found = socket_path(config.listen)
    assert (str(found) if found else None) == path


@pytest.mark.parametrize("listen", ["unix:mull.sock", "unix:/" + "x" * 120, "host", "1:99999"])
def test_where_it_cannot_listen(listen):
    with pytest.raises(ConfigError, match="listen cannot be"):
        read(f'[serve]\nlisten = "{listen}"')
