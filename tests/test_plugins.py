"""What other packages add by their entry points, and what is said of those that are broken."""

from __future__ import annotations

import sys

import pytest

import mull
from mull.neutral.errors import ConfigError
from mull.plugins import load_plugin, load_plugins, plugin_names
from mull.testing import Call, Say, StrictServer, Think

MODULE = """
from contextlib import asynccontextmanager
import mull

made, closed = [], []

class Fixed:
    @asynccontextmanager
    async def send(self, request):
        async def chunks():
            yield b'{"choices":[{"message":{"content":"fixed"},"finish_reason":"stop"}]}'
        yield mull.HttpResponse(200, {}, chunks())

    async def close(self):
        closed.append(self)

def make():
    made.append(Fixed())
    return made[-1]

def fails():
    raise ValueError("no network card")

def weather(city: str) -> str:
    "The weather."
    return "rain"
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Packages as pip leaves them."""

    def install(package, entries, module=""):
        folder = tmp_path / f"{package}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(entries)
        (tmp_path / f"{package}.py").write_text(module)

    monkeypatch.syspath_prepend(tmp_path)
    yield install
    for name in ("corp", "broken", "twin"):
        sys.modules.pop(name, None)


def test_a_plugin_is_found_by_its_name(installed):
    installed("corp", "[mull.tools]\nweather = corp:weather\n", MODULE)
    assert plugin_names("mull.tools") == ("weather",)
    plugin = load_plugin("mull.tools", "weather")
    assert plugin.value("Oslo") == "rain"
    assert str(plugin) == "the plugin 'weather' (mull.tools) of the package corp"
    assert plugin_names("mull.stores") == ()


def test_a_plugin_that_nobody_installed(installed):
    with pytest.raises(ConfigError, match=r"^no package has installed 'x' in mull\.tools$"):
        load_plugin("mull.tools", "x")
    installed("corp", "[mull.tools]\na = corp:weather\nb = corp:weather\n", MODULE)
    with pytest.raises(ConfigError, match=r"; installed: a, b$"):
        load_plugin("mull.tools", "x")


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("import nowhere_to_be_found", "ModuleNotFoundError: No module named"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def", "SyntaxError: "),
        ("", "AttributeError: "),
    ],
)
def test_a_broken_plugin_is_named_and_the_others_work(installed, module, said):
    installed("broken", "[mull.tools]\nbad = broken:tool\n", module)
    installed("corp", "[mull.tools]\nweather = corp:weather\n", MODULE)
    loaded, (problem,) = load_plugins("mull.tools")
    assert [plugin.name for plugin in loaded] == ["weather"]
    begin = "the plugin 'bad' (mull.tools) of the package broken cannot be loaded: "
    assert problem.startswith(begin + said)
    assert "\n" not in problem


def test_two_packages_with_one_name(installed):
    for package in ("corp", "twin"):
        installed(package, f"[mull.tools]\nweather = {package}:weather\n", MODULE)
    with pytest.raises(ConfigError, match="the packages corp and twin both have 'weather'"):
        load_plugin("mull.tools", "weather")


def test_a_transport_by_its_name(installed):
    installed("corp", "[mull.transports]\ncorp = corp:make\nbad = corp:fails\n", MODULE)
    engine = mull.Engine(isolated=True, http_client="corp")
    options = {"base_url": "https://h.example", "engine": engine}
    for _ in range(2):
        assert mull.ask("hi", "openai-compatible/m", **options).text == "fixed"
    import corp

    assert (len(corp.made), corp.closed) == (1, [])
    mull.agent.shared.loop().run(engine.close)
    assert corp.closed == corp.made
    with pytest.raises(ConfigError) as caught:
        mull.Engine(isolated=True, http_client="bad")
    assert str(caught.value) == (
        "the plugin 'bad' (mull.transports) of the package corp cannot be created: "
        "ValueError: no network card"
    )


def test_a_tool_and_a_store_are_used_by_their_names(installed):
    module = (
        MODULE + "\ndef memory():\n    made.append(mull.MemorySessions())\n    return made[-1]\n"
    )
    entries = "[mull.tools]\nweather = corp:weather\n[mull.stores]\nkept = corp:memory\n"
    installed("corp", entries, module)
    script = [[Think("?"), Call("weather", {"city": "Oslo"})], [Think("!"), Say("Rain.")]]
    with StrictServer("kimi", script) as server:
        given = {
            "base_url": server.url,
            "key": "k",
            "tools": [load_plugin("mull.tools", "weather").value],
        }
        talk = mull.open_session("t", model="moonshotai/kimi-k2-thinking", store="kept", **given)
        with talk:
            assert talk.ask("How is it?").text == "Rain."
        assert server.requests[-1].json["messages"][-1]["content"] == "rain"
    (store,) = sys.modules["corp"].made
    assert [info.name for info in store.list()] == ["t"]


def test_a_name_that_nobody_has_installed_is_refused():
    with pytest.raises(ConfigError, match=r"no package has installed 'nosuch' in mull.stores"):
        mull.open_session("t", model="openai/gpt-5", key="k", store="nosuch")
