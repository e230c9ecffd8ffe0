"""The user's latest word on thinking wins, or is contradicted aloud.

Words are said in every place, in every order, and held against an oracle that knows only their
order: what the request says is written down here by hand for one model of each dialect.
"""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from random import Random
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

import mull
from mull.agent.engine import Engine
from mull.agent.opening import open_kept
from mull.agent.setup import profiles
from mull.catalog.load import shipped
from mull.cli import opening, setup
from mull.cli.main import main, parse
from mull.dialects.registry import encode_request
from mull.neutral.errors import SettingError
from mull.settings.profile import Profile
from mull.store.sessions.memory import MemorySessions
from mull.testing.server import Reply, ScriptedServer
from tui.fronts import FakeTalk, drive

EFFORT, BUDGET, ENABLED = "reasoning.effort", "reasoning.maxTokens", "reasoning.enabled"
KEYS = {"effort": EFFORT, "none": EFFORT, "budget": BUDGET, "off": ENABLED, "on": ENABLED}


class Word(NamedTuple):
    """What is said, and where. `kind` is effort, budget, none (a level), off or on."""

    place: str
    kind: str
    value: Any

    @property
    def setting(self) -> dict[str, Any]:
        return {KEYS[self.kind]: self.value}

    @property
    def flag(self) -> str:
        value = {True: "true", False: "false"}.get(self.value, self.value)
        return f"{KEYS[self.kind]}={value}"


LEVELS, BUDGETS = ("low", "high"), (5_000, 20_000)


def values(kind: str, at: int) -> Any:
    """Different ones for the first and the second word."""
    return {
        "effort": LEVELS[at],
        "budget": BUDGETS[at],
        "none": "none",
        "off": False,
        "on": True,
    }[kind]


ALL = ("effort", "budget", "none", "off", "on")
STRENGTH = {"config": 1, "profile": 2, "stored": 3, "environment": 4, "now": 5, "terminal": 6}
PLACES: dict[str, tuple[str, tuple[str, ...]]] = {
    "config": ("config", ALL),
    "profile": ("profile", ALL),
    "stored name": ("stored", ("effort", "budget", "none")),
    "stored flag": ("stored", ALL),
    "stored library": ("stored", ALL),
    "stored /set": ("stored", ALL),
    "THINKING": ("environment", ("off", "on")),
    "REASONING_EFFORT": ("environment", ("effort", "none")),
    "MULL_REASONING_*": ("environment", ALL),
    "MULL_MODEL": ("environment", ("effort", "budget", "none")),
    "name": ("now", ("effort", "budget", "none")),
    "flag": ("now", ALL),
    "budget flag": ("now", ("budget",)),
    "library": ("now", ALL),
    "/set": ("terminal", ALL),
    "/thinking": ("terminal", ALL),
    "/model": ("terminal", ("effort", "budget", "none")),
}


NAMING = ("stored name", "name", "/model")


class Wanted(NamedTuple):
    off: bool = False
    on: bool = False
    level: str | None = None
    budget: int | None = None


OFF = Wanted(off=True)


def latest(words: list[Word]) -> Wanted:
    """What words that were said one after the other come to."""
    names = [at for at, word in enumerate(words) if word.place in NAMING]
    for at in names[-1:]:  # a name replaces the one before, with its level
        earlier = [one for one in words[:at] if one.place not in (*NAMING, "MULL_MODEL")]
        words = [*earlier, *words[at:]]
    whether = words[-1].kind if words else ""
    if whether in ("off", "none"):
        return OFF
    levels = [at for at, word in enumerate(words) if word.kind in ("effort", "none")]
    numbers = [at for at, word in enumerate(words) if word.kind == "budget"]
    level = words[levels[-1]].value if levels else None
    is_newer = bool(numbers) and numbers[-1] > max(levels, default=-1)
    budget = words[numbers[-1]].value if is_newer else None
    return Wanted(on=bool(words), level=None if level == "none" else level, budget=budget)


def claude(wanted: Wanted) -> Any:
    if wanted.off:
        return None
    level = {None: 10_000, "low": 22_016, "high": 62_976}[wanted.level]
    return {"type": "enabled", "budget_tokens": wanted.budget or level}


def gemini(wanted: Wanted) -> Any:
    if wanted.off:  # this model cannot be off
        return {"includeThoughts": True, "thinkingBudget": 128}
    number = wanted.budget or {None: None, "low": 11_008, "high": 32_768}[wanted.level]
    return {"includeThoughts": True} | ({"thinkingBudget": number} if number else {})


def word_for(wanted: Wanted) -> str | None:
    """For models that take no number: the level said beside it, or the one it is worth."""
    if wanted.off:
        return "none"
    worth = {None: None, 5_000: "low", 20_000: "medium"}[wanted.budget]
    return wanted.level or worth or ("medium" if wanted.on else None)


def gpt(wanted: Wanted) -> Any:
    return (
        {"effort": word_for(wanted) or "medium", "summary": "auto"}
        if not wanted.off
        else ({"effort": "none"})
    )


MODELS: dict[str, tuple[Any, Any]] = {
    "anthropic/claude-sonnet-4-5": (lambda body: body.get("thinking"), claude),
    "google/gemini-2.5-pro": (lambda body: body["generationConfig"]["thinkingConfig"], gemini),
    "openai/gpt-5.2": (lambda body: body["reasoning"], gpt),
    "openai-compatible/unlisted": (lambda body: body.get("reasoning_effort"), word_for),
}
URL = ("--base-url", "http://127.0.0.1:9")


class World:
    """One user's files, variables and sessions."""

    def __init__(self, model: str, folder: Any, patch: pytest.MonkeyPatch) -> None:
        self.model, self.folder, self.patch = model, folder, patch
        self.store = MemorySessions()

    def prepare(self, word: Word) -> None:
        """Say what stands in a file or a variable."""
        match word.place:
            case "config":
                said = {True: "true", False: "false"}.get(word.value, json.dumps(word.value))
                text = f'[settings]\n"{KEYS[word.kind]}" = {said}\n'
                (self.folder / "config.toml").write_text(text)
            case "profile":
                profiles().save("usual", Profile(settings=word.setting), overwrite=True)
                profiles().set_default("usual")
            case "MULL_REASONING_*":
                name = {EFFORT: "EFFORT", BUDGET: "MAX_TOKENS", ENABLED: "ENABLED"}
                self.patch.setenv(f"MULL_REASONING_{name[KEYS[word.kind]]}", str(word.value))
            case "MULL_MODEL":
                self.patch.setenv("MULL_MODEL", f"{self.model}/{word.value}")
            case "THINKING":
                self.patch.setenv("THINKING", "on" if word.value else "off")
            case "REASONING_EFFORT":
                self.patch.setenv("REASONING_EFFORT", word.value)

    def command(self, *words: Word, named: bool = False) -> list[str]:
        """The options of one command that says these words."""
        name = self.model if named else None
        options: list[str] = []
        for word in words:
            match word.place.removeprefix("stored "):
                case "name":
                    name = f"{self.model}/{word.value}"
                case "flag":
                    options += ["--set", word.flag]
                case "budget flag":
                    options += ["--thinking-budget", str(word.value)]
        return [*(["-m", name] if name else []), *options, "--config", str(self.config)]

    @property
    def config(self) -> Any:
        path = self.folder / "config.toml"
        path.touch()
        return path

    @contextmanager
    def opened(self, argv: list[str], **library: Any) -> Iterator[Any]:
        """The session that a command opens, or a program beside its settings."""
        options = parse(["ask", *argv, "hi"])
        ready = setup.load(options)
        vars(ready)["_catalog"] = shipped()
        wanted = opening.wanted(options, "ask")
        if library:
            wanted = replace(wanted, settings=library)
        session = asyncio.run(open_kept(self.store, Engine(ready), wanted, key="k"))
        try:
            yield session
        finally:
            session.close()

    def run(self, words: list[Word], way: str) -> Any:
        """The body of the request, when all of this was said, weakest first."""
        for word in words:
            self.prepare(word)
        before = [word for word in words if PLACES[word.place][0] == "stored"]
        go_on = {"--session": ["--session", "talk"], "--continue": ["--continue"]}
        if way != "fresh":
            self.tell([*self.command(named=True), "--name", "talk", *URL], before[:1])
            for word in before[1:]:
                self.tell([*self.command(), "--session", "talk"], [word])
        now = [word for word in words if PLACES[word.place][0] == "now"]
        library = {
            key: value
            for word in now
            if word.place == "library"
            for key, value in word.setting.items()
        }
        named = way == "fresh" and not any(word.place == "MULL_MODEL" for word in words)
        argv = self.command(*now, named=named) + go_on.get(way, list(URL))
        with self.opened(argv, **library) as session:
            for word in words:
                if PLACES[word.place][0] == "terminal":
                    drive(FakeTalk(session), self.typed(word))
            session.take(mull.user("Hi"))
            prepared = session.prepared()
            return json.loads(encode_request(prepared.request, session.target).body)

    def tell(self, argv: list[str], words: list[Word]) -> None:
        """One command whose session is stored."""
        typed = [word for word in words if word.place == "stored /set"]
        library = {
            key: value
            for word in words
            if word.place == "stored library"
            for key, value in word.setting.items()
        }
        said = [word for word in words if word.place in ("stored name", "stored flag")]
        given = self.command(*said)[:-2]
        if given[:1] == ["-m"] and argv[:1] == ["-m"]:
            argv = argv[2:]
        with self.opened([*argv, *given], **library) as session:
            for word in typed:
                drive(FakeTalk(session), self.typed(word))
            session.take(mull.user("Hi"))

    def typed(self, word: Word) -> str:
        match word.place.removeprefix("stored "):
            case "/set":
                return f"/set {word.flag.replace('=', ' ')}"
            case "/model":
                return f"/model {self.model}/{word.value}"
            case _:
                how = {"effort": "effort", "none": "effort", "budget": "budget"}.get(word.kind)
                return f"/thinking {how} {word.value}" if how else f"/thinking {word.kind}"


def strength(place: str) -> int:
    return STRENGTH[PLACES[place][0]]


def ways(*places: str) -> tuple[str, ...]:
    if any(PLACES[place][0] == "stored" for place in places):
        return ("--session", "--continue")
    return ("fresh",) if "MULL_MODEL" in places else ("fresh", "--session", "--continue")


PAIRS = [
    (one, two)
    for one, two in product(PLACES, PLACES)
    if strength(one) < strength(two)
    or (one == two and PLACES[one][0] in ("stored", "terminal"))
    or (one != two and PLACES[one][0] == PLACES[two][0] in ("stored", "terminal"))
]


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, "k")
    count = iter(range(10_000))

    @contextmanager
    def world(model):
        folder = tmp_path / str(next(count))
        folder.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MULL_CONFIG_DIR", str(folder))
            yield World(model, folder, patch)

    return world


SCENES = [
    (Word(first, one, values(one, 0)), Word(second, two, values(two, 1)))
    for first, second in PAIRS
    for one, two in product(PLACES[first][1], PLACES[second][1])
]
SHARES = 12


def judge(world, words: list[Word], model: str, at: int) -> None:
    possible = ways(*(word.place for word in words))
    way = possible[at % len(possible)]
    read, expected = MODELS[model]
    with world(model) as user:
        body = user.run(words, way)
    assert read(body) == expected(latest(words)), (words, way)


@pytest.mark.parametrize("share", range(SHARES))
def test_the_later_of_two_words_wins_wherever_they_are_said(world, share):
    """A third of them by default, each with one of the models."""
    for at in range(share, len(SCENES), SHARES * 3):
        judge(world, [*SCENES[at]], [*MODELS][(at // SHARES + share) % len(MODELS)], at)


def test_the_latest_of_three_words_wins(world):
    """A few of the many, always the same ones."""
    chance = Random(1)
    for at in range(60):
        places = sorted(chance.sample(list(PLACES), 3), key=strength)
        if len({strength(place) for place in places}) < 3:
            continue
        kinds = [chance.choice(PLACES[place][1]) for place in places]
        words = [
            Word(place, kind, values(kind, step % 2))
            for step, (place, kind) in enumerate(zip(places, kinds, strict=True))
        ]
        judge(world, words, [*MODELS][at % len(MODELS)], at)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("share", range(SHARES))
def test_the_later_of_two_words_wins_with_every_model(world, share, model):
    for at in range(share, len(SCENES), SHARES):
        judge(world, [*SCENES[at]], model, at // SHARES)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kinds", [("effort", "budget"), ("budget", "effort"), ("on", "effort")])
def test_words_that_one_command_says_together_all_count(world, model, kinds):
    """An effort and a budget are two wishes: the number where one can be sent, else the level."""
    words = [Word("flag", kind, values(kind, 0)) for kind in kinds]
    by_name = [word._replace(place="name" if word.kind != "on" else "flag") for word in words]
    by_name = [by_name[0], words[1]] if by_name[0].place == "name" else [words[0], by_name[1]]
    read, expected = MODELS[model]
    budget = 5_000 if "budget" in kinds else None
    for said, way in product((words, by_name), ("fresh", "--continue")):
        with world(model) as user:
            body = user.run(said, way)
        assert read(body) == expected(Wanted(on=True, level="low", budget=budget)), said


CONTRADICTIONS = [
    (["-m", "{}/low"], "reasoning.effort=high"),
    (["-m", "{}/low"], "reasoning.effort=none"),
    (["-m", "{}/low"], "reasoning.enabled=false"),
    (["-m", "{}/none"], "reasoning.enabled=true"),
    (["-m", "{}/none"], "reasoning.maxTokens=5000"),
    (["-m", "{}/4000"], "reasoning.maxTokens=5000"),
    (["-m", "{}/4000"], "reasoning.effort=none"),
    (["-m", "{}", "--set", "reasoning.effort=low"], "reasoning.effort=high"),
    (["-m", "{}", "--set", "reasoning.enabled=false"], "reasoning.maxTokens=5000"),
    (["-m", "{}", "--set", "reasoning.effort=none"], "reasoning.enabled=true"),
]


@pytest.mark.parametrize(("first", "second"), CONTRADICTIONS)
@pytest.mark.parametrize("command", ["ask", "chat", "wire", "batch", "sweep"])
def test_two_words_of_one_command_that_contradict_each_other_are_an_error(
    monkeypatch, capsys, tmp_path, command, first, second
):
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text('{"prompt": "Hi"}\n')
    extra = {
        "ask": ["ask", "hi"],
        "chat": ["chat", "--plain"],
        "wire": ["wire", "encode", "-"],
        "batch": ["batch", str(tasks)],
        "sweep": ["sweep", str(tasks)],
    }[command]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"messages": []}')))
    model = "openai-compatible/m"
    options = [word.format(model) for word in first]
    with ScriptedServer() as server:
        place = ["--base-url", server.url]
        assert main([*extra, *options, "--set", second, *place]) == 2
    assert server.requests == []
    told = capsys.readouterr().err
    named = f'"{options[1]}"' if options[1] != model else options[3]
    assert second in told
    assert named in told
    assert "contradict each other: keep one of them" in told


def test_two_models_in_one_command_are_an_error(capsys):
    with pytest.raises(SystemExit):
        main(["ask", "-m", "openai-compatible/m/low", "-m", "openai-compatible/m/high", "hi"])
    assert "m/low and openai-compatible/m/high contradict each other" in capsys.readouterr().err


@pytest.mark.parametrize("level", ["low", "high", "none"])
def test_the_same_word_twice_is_no_contradiction(world, level):
    for model, (read, expected) in MODELS.items():
        kind = "none" if level == "none" else "effort"
        words = [Word("name", kind, level), Word("flag", kind, level)]
        with world(model) as user:
            assert read(user.run(words, "fresh")) == expected(latest(words[:1]))


@pytest.mark.parametrize(
    "call",
    [
        lambda **said: mull.Conversation(**said),
        lambda **said: mull.ask("hi", **said),
        lambda **said: mull.complete("hi", **said),
        lambda **said: mull.open_session("talk", store=MemorySessions(), **said),
    ],
)
def test_a_program_that_contradicts_itself_is_told_before_anything_is_sent(call):
    with ScriptedServer() as server:
        for model, settings in (
            ("openai-compatible/m/low", {EFFORT: "high"}),
            ("openai-compatible/m/low", {ENABLED: False}),
            ("openai-compatible/m/5000", {BUDGET: 4000}),
            ("openai-compatible/m", {EFFORT: "none", BUDGET: 4000}),
            ("anthropic/claude-sonnet-4-5-thinking", {ENABLED: False}),
        ):
            with pytest.raises(SettingError, match="contradict each other"):
                call(model=model, settings=settings, base_url=server.url)
    assert server.requests == []


REFUSED = Reply.json({"error": {"message": "no"}}, 403)
LATER: list[tuple[list[str], dict[str, str], Wanted]] = [
    ([], {}, Wanted(level="low")),
    (["--set", "reasoning.effort=high"], {}, Wanted(level="high")),
    (["--set", "reasoning.effort=none"], {}, OFF),
    (["--set", "reasoning.enabled=false"], {}, OFF),
    (["--thinking-budget", "20000"], {}, Wanted(level="low", budget=20_000)),
    (["--set", "reasoning.maxTokens=5000"], {}, Wanted(level="low", budget=5_000)),
    ([], {"REASONING_EFFORT": "high"}, Wanted(level="high")),
    ([], {"MULL_REASONING_MAX_TOKENS": "5000"}, Wanted(level="low", budget=5_000)),
    ([], {"THINKING": "off"}, OFF),
    (["-m", "{}/high"], {"THINKING": "off"}, Wanted(level="high")),
    (["-m", "{}"], {}, Wanted()),
]


@pytest.mark.parametrize("model", MODELS)
def test_a_session_begun_with_a_level_hears_what_mull_ask_says_later(world, model, monkeypatch):
    read, expected = MODELS[model]
    monkeypatch.setattr("sys.stdin", io.StringIO())
    for at, (options, environ, wanted) in enumerate(LATER):
        with ScriptedServer([REFUSED] * 3) as server, world(model) as user:
            begin = ["-m", f"{model}/low", "--base-url", server.url, "--name", f"talk {at}"]
            main(["ask", *begin, "1"])
            for name, value in environ.items():
                user.patch.setenv(name, value)
            main(["ask", "--session", f"talk {at}", *(one.format(model) for one in options), "2"])
            for name in environ:
                user.patch.delenv(name)
            main(["ask", "--continue", "3"])
        sent = [read(request.json) for request in server.requests]
        left = Wanted(level="low") if environ and not options else wanted  # a variable is not kept
        assert sent == [*map(expected, (Wanted(level="low"), wanted, left))], options


NAMED = "anthropic/claude-sonnet-4-5-thinking"
ON, LOW = {"type": "enabled", "budget_tokens": 10_000}, claude(Wanted(level="low"))
ASKED: list[tuple[list[str], list[str], dict[str, str], list[Any]]] = [
    (["-m", NAMED], [], {"THINKING": "off"}, [ON, None, ON]),
    (["-m", NAMED], ["--set", "reasoning.enabled=false"], {}, [ON, None, None]),
    (["-m", NAMED], ["--set", "reasoning.effort=low"], {}, [ON, LOW, LOW]),
    (["--set", "reasoning.enabled=false"], ["-m", NAMED], {}, [None, ON, ON]),
    (["--set", "reasoning.effort=none"], ["-m", NAMED], {}, [None, ON, ON]),
    (["-m", f"{NAMED[:-9]}/none"], ["-m", NAMED], {"REASONING_EFFORT": "none"}, [None, ON, ON]),
    (["--set", "reasoning.enabled=false"], ["-m", f"{NAMED}/low"], {}, [None, LOW, LOW]),
]


@pytest.mark.parametrize(("begin", "later", "environ", "wanted"), ASKED)
def test_a_name_that_asks_for_thinking_is_a_word_like_any_other(
    world, monkeypatch, begin, later, environ, wanted
):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    begin = begin if begin[0] == "-m" else ["-m", NAMED.removesuffix("-thinking"), *begin]
    with ScriptedServer([REFUSED] * 3) as server, world(NAMED) as user:
        main(["ask", *begin, "--base-url", server.url, "--name", "talk", "1"])
        for name, value in environ.items():
            user.patch.setenv(name, value)
        main(["ask", "--session", "talk", *later, "2"])
        for name in environ:
            user.patch.delenv(name)
        main(["ask", "--session", "talk", "3"])
    assert [request.json.get("thinking") for request in server.requests] == wanted


def test_a_name_that_asks_for_thinking_goes_before_off_in_the_environment_and_in_the_terminal(
    world, monkeypatch, capsys
):
    monkeypatch.setenv("THINKING", "off")
    talk = b'{"messages": [{"role": "user", "blocks": [{"type": "text", "text": "hi"}]}]}'
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(talk)))
    main(["wire", "encode", "-m", NAMED, "-"])
    assert json.loads(capsys.readouterr().out)["body"]["thinking"] == ON
    with (
        world(NAMED.removesuffix("-thinking")) as user,
        user.opened(user.command(named=True)) as session,
    ):
        for typed, sent in (
            (f"/model {NAMED}", ON),
            ("/set reasoning.enabled false", None),
            (f"/model {NAMED}", ON),
        ):
            drive(FakeTalk(session), typed)
            session.take(mull.user("Hi"))
            body = encode_request(session.prepared().request, session.target).body
            assert json.loads(body).get("thinking") == sent


def test_a_name_that_asks_for_thinking_and_off_in_one_command_are_an_error(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert main(["ask", "-m", NAMED, "--set", "reasoning.enabled=false", "hi"]) == 2
    assert f'reasoning.enabled=false and "{NAMED}" contradict' in capsys.readouterr().err


@pytest.mark.parametrize("model", MODELS)
def test_a_conversation_hears_what_was_said_last_and_goes_on_with_it(world, model, monkeypatch):
    read, expected = MODELS[model]
    steps: list[tuple[list[str], str, Wanted]] = [
        (["-m", f"{model}/low", "--name", "talk"], "", Wanted(level="low")),
        (["--session", "talk"], "/thinking budget 5000", Wanted(level="low", budget=5_000)),
        (["--continue"], "/thinking effort high", Wanted(level="high")),
        (["--continue", "--set", "reasoning.enabled=false"], "", OFF),
        (["--continue"], "", OFF),
        (["--continue"], f"/model {model}/low", Wanted(level="low")),
        (
            ["--continue", "--thinking-budget", "20000"],
            "/set reasoning.effort none",
            OFF,
        ),
        (["--continue"], "/thinking on", Wanted(on=True)),
    ]
    with ScriptedServer([REFUSED] * len(steps)) as server, world(model) as user:
        for at, (options, typed, _) in enumerate(steps):
            place = ["--base-url", server.url] if at == 0 else []
            script = user.folder / "typed"
            script.write_text(f"{typed}\nhi\n")
            with script.open() as typing:
                monkeypatch.setattr("sys.stdin", typing)
                assert main(["chat", "--plain", *options, *place]) == 0
    sent = [read(request.json) for request in server.requests]
    assert sent == [expected(wanted) for _, _, wanted in steps]


@pytest.mark.parametrize("model", MODELS)
def test_a_session_keeps_its_model_and_says_so_where_the_variable_names_another(
    world, model, monkeypatch, capsys
):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    read, expected = MODELS[model]
    with ScriptedServer([REFUSED] * 3) as server, world(model) as user:
        main(["ask", "-m", f"{model}/low", "--base-url", server.url, "1"])
        user.patch.setenv("MULL_MODEL", "zai/glm-4.7/high")
        capsys.readouterr()
        main(["ask", "--continue", "2"])
        assert f"this session continues with {model}: MULL_MODEL" in capsys.readouterr().err
        user.patch.setenv("MULL_MODEL", f"{model.partition('/')[2]}/high")
        main(["ask", "--continue", "3"])
        assert "MULL_MODEL" not in capsys.readouterr().err
    levels = [Wanted(level=level) for level in ("low", "low", "high")]
    assert [read(request.json) for request in server.requests] == [*map(expected, levels)]


@pytest.mark.parametrize("model", [*MODELS][:3])
def test_what_one_item_of_a_batch_says_goes_before_what_all_of_them_are_told(model):
    read, expected = MODELS[model]
    items = [
        {"prompt": "1"},
        {"prompt": "2", "model": f"{model}/high"},
        {"prompt": "3", "settings": {EFFORT: "high"}},
        {"prompt": "4", "settings": {ENABLED: False}},
        {"prompt": "5", "model": f"{model}/5000"},
        {"prompt": "6", "model": f"{model}/none"},
    ]
    high = Wanted(level="high")
    wanted = [Wanted(level="low"), high, high, OFF, Wanted(level="low", budget=5_000), OFF]
    by_name = [*wanted[:4], Wanted(budget=5_000), OFF]
    for said, levels in (
        ({"model": f"{model}/low"}, by_name),
        ({"model": model, "settings": {EFFORT: "low"}}, wanted),
    ):
        with ScriptedServer([Reply.json({"error": {"message": "no"}}, 422)] * 6) as server:
            found = mull.batch(items, base_url=server.url, key="k", concurrency=1, **said)
            assert len([one for one in found if one.error is not None]) == 6
        assert [read(request.json) for request in server.requests] == [*map(expected, levels)]
