"""Tasks with tools: a thought and a call, a thought and the answer from the result."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, NamedTuple

from training.problem import Check
from training.words import NAMES

__all__ = [
    "FUNCTIONS",
    "OWN",
    "Errand",
    "Step",
    "call_function",
    "list_folder",
    "read_file",
    "search",
]


class Step(NamedTuple):
    """A thought, the call after it, and what the tool says."""

    thought: str
    name: str
    arguments: Mapping[str, Any]
    result: str


class Errand(NamedTuple):
    """A question that needs tools, and the way to its answer; `tools` are the names on offer."""

    question: str
    steps: tuple[Step, ...]
    thought: str
    answer: str
    expected: str
    check: Check
    tools: tuple[str, ...]


def _function(name: str, description: str, /, **arguments: str) -> dict[str, Any]:
    properties = {key: {"type": kind} for key, kind in arguments.items()}
    schema = {"type": "object", "properties": properties, "required": list(arguments)}
    return {"name": name, "description": description, "parameters": schema}


OWN = ("read", "list")
"""The tools of mull's own that are practised."""

FUNCTIONS: Mapping[str, Mapping[str, Any]] = {
    one["name"]: one
    for one in (
        _function("calculate", "Work out an arithmetic expression.", expression="string"),
        _function("get_weather", "The weather in a city now", city="string"),
        _function("altitude", "The altitude of a place in metres.", place="string"),
        _function("population", "How many people live in a city.", city="string"),
        _function("get_time", "The time in a city.", city="string"),
        _function("phone_number", "Look up a person's phone number.", name="string"),
        _function("stock", "How many of an article are in stock.", article="string"),
        _function("birthday", "The birthday of a person.", person="string"),
        _function("word_length", "How long a word is.", word="string"),
        _function("price", "The price of an article in euros.", article="string"),
    )
}
_CITIES = "Paris Rome Oslo Tokyo Berlin London Madrid Cairo Lima Delhi Seoul Quito La-Paz".split()
_ARTICLES = "lamp chair table bread milk phone bicycle coat umbrella kettle".split()
_STEMS = (
    "notes todo config settings readme data report list main test server users plan ideas menu"
    " recipe budget log info about names version letter diary"
).split()
_ENDINGS = (".txt", ".md", ".toml", ".cfg", ".json", ".csv", ".py", ".ini", ".yaml")
_FOLDERS = "src docs notes data tests app work old letters images".split()
_KEYS = (
    "port host user version colour size name city timeout language owner title level limit"
    " author theme speed count total price date"
).split()
_VALUES = "blue green localhost anna admin berlin oslo english dark high small fast hugo".split()


def _file(rng: Random, *, in_folder: float = 0.25) -> str:
    name = rng.choice(_STEMS) + rng.choice(_ENDINGS)
    return f"{rng.choice(_FOLDERS)}/{name}" if rng.random() < in_folder else name


def _numbered(lines: list[str]) -> str:
    """Lines as mull's `read` gives them."""
    return "\n".join(f"{number:>6}\t{line}" for number, line in enumerate(lines, 1))


def _value(rng: Random) -> str:
    kind = rng.random()
    if kind < 0.5:
        return str(rng.randint(1, 9999))
    return f"{rng.randint(0, 9)}.{rng.randint(0, 20)}" if kind < 0.65 else rng.choice(_VALUES)


def _content(rng: Random) -> tuple[list[str], str, str, str]:
    """Lines of a file, the one that matters, what is asked of it, and the answer."""
    if rng.random() < 0.7:
        keys = rng.sample(_KEYS, rng.randint(1, 4))
        sign = rng.choice((" = ", ": ", "="))
        lines = [f"{key}{sign}{_value(rng)}" for key in keys]
        at = rng.randrange(len(keys))
        value = lines[at].removeprefix(keys[at] + sign)
        return lines, lines[at], f"the {keys[at]}", value
    who, thing = rng.choice(NAMES), rng.choice(("code", "password", "number", "key", "room"))
    value = str(rng.randint(10, 9999))
    lines = [f"Dear {who},", f"the {thing} is {value}."]
    return lines, lines[1], f"the {thing}", value


_WHAT = (
    "What is {what} in {file}?",
    "Which value does {what} have in {file}?",
    "Read {file} and tell me {what}.",
    "Look into {file}: what is {what}?",
    "{file}: what is {what}?",
    "Tell me {what} in {file}",
)


def _read_step(file: str, result: str) -> Step:
    return Step(f"The question is about {file}. I read it first.", "read", {"path": file}, result)


def _found(file: str, line: str, value: str) -> str:
    return f"{file} says: {line.rstrip('.')}. So {value}."


def read_file(rng: Random) -> Errand:
    """A question about a file, which may not be there."""
    file = _file(rng)
    lines, line, what, value = _content(rng)
    asked = rng.choice(_WHAT).format(what=what, file=file)
    if rng.random() < 0.1:
        near = f"; what comes closest: {_file(rng)}" if rng.random() < 0.5 else ""
        step = _read_step(file, f"{file} does not exist{near}")
        thought = f"{file} does not exist, so I cannot know {what}. I say so."
        answer = f"I don't know: {file} does not exist."
        return Errand(asked, (step,), thought, answer, "does not exist", "holds", OWN)
    step = _read_step(file, _numbered(lines))
    thought = _found(file, line, value)
    return Errand(asked, (step,), thought, f"In {file}, {what} is {value}.", value, "holds", OWN)


def _listing(rng: Random, folder: str, count: int) -> list[str]:
    names: list[str] = []
    while len(names) < count:
        name = _file(rng, in_folder=0)
        if rng.random() < 0.2:
            name = rng.choice(_FOLDERS) + "/"
        if name not in names:
            names.append(name)
    names.sort()
    return names if folder == "." else [f"{folder}/{name}" for name in names]


_WHICH = ("Which files are {}?", "What is {}?", "List the files {}.", "Show me what is {}")
_HOW_MANY = ("How many files are {}?", "How many things are {}?", "Count the files {}.")


def list_folder(rng: Random) -> Errand:
    """What lies in a folder, or how much."""
    folder = "." if rng.random() < 0.5 else rng.choice(_FOLDERS)
    here = "here" if folder == "." else f"in {folder}"
    names = _listing(rng, folder, rng.randint(1, 5))
    result = "\n".join(names)
    about = "this folder" if folder == "." else f"the folder {folder}"
    step = Step(f"The question is about {about}. I list it.", "list", {"path": folder}, result)
    if rng.random() < 0.5:
        joined = ", ".join(names)
        asked = rng.choice(_WHICH).format(here)
        thought = f"The list says: {joined}."
        return Errand(asked, (step,), thought, f"There is {joined}.", joined, "holds", OWN)
    numbered = ", ".join(f"{n} {name}" for n, name in enumerate(names, 1))
    asked, count = rng.choice(_HOW_MANY).format(here), str(len(names))
    thought = f"I count: {numbered}. So {count}."
    return Errand(asked, (step,), thought, f"There are {count}.", count, "number", OWN)


def search(rng: Random) -> Errand:
    """A file whose name is not told: list the folder, then read what was found."""
    folder = rng.choice(_FOLDERS)
    file = f"{folder}/{rng.choice(_STEMS)}{rng.choice(_ENDINGS)}"
    lines, line, what, value = _content(rng)
    forms = (
        "There is one file in {f}. What is {w} in it?",
        "Find the file in {f} and tell me {w}.",
        "What is {w} in the file in {f}?",
    )
    asked = rng.choice(forms).format(f=folder, w=what)
    steps = (
        Step(f"I must find the file. I list {folder}.", "list", {"path": folder}, file),
        Step(f"The file is {file}. I read it.", "read", {"path": file}, _numbered(lines)),
    )
    thought = _found(file, line, value)
    return Errand(asked, steps, thought, f"In {file}, {what} is {value}.", value, "holds", OWN)


def call_function(rng: Random) -> Errand:
    """A question that one of the functions on offer answers."""
    name = rng.choice(list(FUNCTIONS))
    city = rng.choice(_CITIES).replace("-", " ")
    article, person = rng.choice(_ARTICLES), rng.choice(NAMES)
    a, b, n = rng.randint(100, 9999), rng.randint(11, 999), rng.randint(2, 5000)
    sign = rng.choice("+-*")
    day = f"{rng.randint(1, 28)} {rng.choice(('May', 'June', 'July', 'March'))}"
    clock = f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}"
    sky = f"{rng.randint(-5, 35)} degrees, {rng.choice(('sunny', 'rain', 'clouds', 'snow'))}"
    total = {"+": a + b, "-": a - b, "*": a * b}[sign]
    # the question, the argument, the result, what is expected, and the answer
    kinds = {
        "calculate": (f"What is {a} {sign} {b}?", f"{a} {sign} {b}", f"{total}", "{a} = {r}"),
        "get_weather": (f"What is the weather in {city}?", city, sky, "In {a} it is: {r}."),
        "altitude": (f"How high is {city}?", city, f"{n}", "{a} lies at {r} metres."),
        "population": (f"How many people live in {city}?", city, f"{n}", "{r} people live in {a}."),
        "get_time": (f"What time is it in {city}?", city, clock, "In {a} it is {r}."),
        "phone_number": (f"What is the number of {person}?", person, f"{n}", "{a} has {r}."),
        "stock": (
            f"How many of the article {article} are in stock?",
            article,
            f"{n}",
            "There are {r}.",
        ),
        "birthday": (f"When is the birthday of {person}?", person, day, "It is on {r}."),
        "word_length": (
            f"How long is the word {article}?",
            article,
            f"{len(article)}",
            "It has {r}.",
        ),
        "price": (f"What does the article {article} cost?", article, f"{n}", "It costs {r} euros."),
    }
    asked, argument, result, form = kinds[name]
    if rng.random() < 0.2:
        asked += f" Use {name}."
    (key,) = FUNCTIONS[name]["parameters"]["properties"]
    step = Step(f"The tool {name} can tell me that.", name, {key: argument}, result)
    answer = form.format(a=argument, r=result)
    others = rng.sample([one for one in FUNCTIONS if one != name], rng.randint(0, 2))
    tools = [name, *others]
    rng.shuffle(tools)
    thought = f"{name} says {result}."
    return Errand(asked, (step,), thought, answer, result, "holds", tuple(tools))
