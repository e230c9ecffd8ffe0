"""Tasks with words: small stories, logic, tables, texts, and answers in a given form."""

from __future__ import annotations

from random import Random

from training.numbers import add_steps, multiply_steps, subtract_steps
from training.problem import Problem

__all__ = ["NAMES", "follow_format", "read_table", "read_text", "reason", "solve_story"]

NAMES = (
    "Anna Ben Carl Dora Emma Finn Greta Hugo Ida Jonas Kim Leo Mia Noah Olga Paul Rosa Sam Tina"
    " Uma Vera Will Yara Zoe Omar Lina Nina Max Eva Tom"
).split()
_GOODS = "apples pears books coins stamps marbles cookies pencils eggs cards".split()
_CITIES = "Paris Rome Oslo Berlin Madrid Vienna Prague Dublin Lisbon Athens Cairo Lima".split()
_JOBS = "baker nurse teacher farmer painter driver singer cook pilot doctor".split()
_COLOURS = "red blue green yellow black white brown grey orange purple".split()
_ANIMALS = "cat dog horse bird rabbit goat hamster turtle parrot fish".split()
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


def solve_story(rng: Random) -> Problem:
    """A story with one step of arithmetic."""
    who, other = rng.sample(NAMES, 2)
    goods = rng.choice(_GOODS)
    a, b = rng.randint(2, 60), rng.randint(2, 60)
    kind = rng.choice(("more", "give", "each", "left"))
    if kind == "each":
        a, b = rng.randint(2, 30), rng.randint(2, 9)
        told = rng.choice(
            (
                f"{who} has {b} bags with {a} {goods} in each. How many {goods} are there?",
                f"A box holds {a} {goods}. How many {goods} are in {b} boxes?",
                f"One ticket costs {a} dollars. How much do {b} tickets cost?",
            )
        )
        result, term, steps = a * b, f"{a} x {b}", multiply_steps(a, b)
    elif kind == "more":
        told = rng.choice(
            (
                f"{who} has {a} {goods} and gets {b} more. How many {goods} does {who} have now?",
                f"{who} has {a} {goods} and {other} has {b}. How many do they have together?",
                f"There are {a} {goods} on the table and {b} on the floor. How many are there?",
            )
        )
        result, term, steps = a + b, f"{a} + {b}", add_steps(a, b)
    else:
        b, a = sorted((a, b))
        told = rng.choice(
            (
                f"{who} has {a} {goods} and gives {b} to {other}. How many are left?",
                f"{who} had {a} {goods} and lost {b}. How many {goods} does {who} have now?",
                f"{a} birds sit on a tree. {b} fly away. How many are left?",
            )
        )
        result, term, steps = a - b, f"{a} - {b}", subtract_steps(a, b)
    word = {"+": "Add", "-": "Subtract", "x": "Multiply"}[term.split()[1]]
    thought = f"{word}: {term}. {steps} So {result}."
    return Problem(told, thought, f"{term} = {result}.", f"The answer is {result}.", str(result))


_RELATIONS = (
    ("taller", "tallest", "shortest"),
    ("older", "oldest", "youngest"),
    ("faster", "fastest", "slowest"),
    ("richer", "richest", "poorest"),
)


def reason(rng: Random) -> Problem:
    """An order of three, or a class inside a class."""
    a, b, c = rng.sample(NAMES, 3)
    if rng.random() < 0.6:
        more, most, least = rng.choice(_RELATIONS)
        told = [f"{a} is {more} than {b}.", f"{b} is {more} than {c}."]
        rng.shuffle(told)
        wanted, who = rng.choice(((most, a), (least, c)))
        end = "first" if wanted == most else "last"
        thought = (
            f"{a} is before {b}, {b} is before {c}: {a}, {b}, {c}."
            f" The {wanted} is the {end}: {who}."
        )
        asked = f"{' '.join(told)} Who is the {wanted}?"
        return Problem(asked, thought, f"{who}.", f"{who} is the {wanted}.", who, "begins")
    kinds = rng.sample(("blims", "dorks", "wugs", "zins", "tobs", "fleps", "mips", "gorps"), 3)
    holds = rng.random() < 0.5
    asked_kind = kinds[2] if holds else rng.choice(("red", "square", "heavy"))
    told_text = f"All {kinds[0]} are {kinds[1]}. All {kinds[1]} are {kinds[2]}."
    if holds:
        thought = f"{kinds[0]} are {kinds[1]}, and {kinds[1]} are {kinds[2]}. So yes."
        answer, expected = f"Yes, all {kinds[0]} are {kinds[2]}.", "Yes"
    else:
        thought = f"Nothing is said about {asked_kind}. So I cannot know."
        answer, expected = f"I don't know: nothing is said about {asked_kind}.", "I don't know"
    asked = f"{told_text} Are all {kinds[0]} {asked_kind}?"
    return Problem(asked, thought, thought.split(". ")[-1], answer, expected, "begins")


def read_table(rng: Random) -> Problem:
    """A cell of a small table."""
    names = rng.sample(NAMES, rng.randint(2, 4))
    rows = [(n, str(rng.randint(5, 80)), rng.choice(_CITIES), rng.choice(_JOBS)) for n in names]
    heads = ("name", "age", "city", "job")
    wide = rng.choice((3, 4))
    table = "\n".join(" | ".join(row[:wide]) for row in (heads, *rows))
    row, column = rng.choice(rows), rng.randrange(1, wide)
    head, value = heads[column], row[column]
    forms = {
        "age": ("How old is {}?", "What is the age of {}?"),
        "city": ("In which city does {} live?", "Where does {} live?"),
        "job": ("What is the job of {}?", "What does {} work as?"),
    }
    asked = rng.choice(forms[head]).format(row[0])
    columns = ", ".join(f"{one} {cell}" for one, cell in zip(heads[1:wide], row[1:], strict=False))
    thought = f"I look for the {head} of {row[0]}. The row: {columns}. The {head} is {value}."
    answer = f"The {head} of {row[0]} is {value}."
    return Problem(f"{table}\n\n{asked}", thought, f"{head}: {value}.", answer, value, "holds")


def read_text(rng: Random) -> Problem:
    """A fact of a short text, or that the text does not say it."""
    who, other = rng.sample(NAMES, 2)
    facts = [
        (f"{who} lives in {(v := rng.choice(_CITIES))}.", f"Where does {who} live?", "city", v),
        (f"{who} works as a {(v := rng.choice(_JOBS))}.", f"What is {who}'s job?", "job", v),
        (
            f"{who} drives a car that is {(v := rng.choice(_COLOURS))}.",
            f"What colour is {who}'s car?",
            "colour of the car",
            v,
        ),
        (
            f"{who}'s {(pet := rng.choice(_ANIMALS))} is called {(v := other)}.",
            f"What is the name of {who}'s {pet}?",
            f"name of the {pet}",
            v,
        ),
        (
            f"On {(v := rng.choice(_DAYS))} {who} goes swimming.",
            f"On which day does {who} go swimming?",
            "day",
            v,
        ),
        (
            f"{who} has {(v := str(rng.randint(2, 9)))} cousins.",
            f"How many cousins does {who} have?",
            "number of cousins",
            v,
        ),
    ]
    rng.shuffle(facts)
    text, asked = facts[:3], facts[0]
    rng.shuffle(text)
    if rng.random() < 0.3:
        asked = facts[3]
        thought = f"I look for the {asked[2]}. {_gone_through(text)} The text does not say it."
        answer, expected = f"I don't know: the text does not say the {asked[2]}.", "I don't know"
        hint, check = "The text does not say it.", "begins"
    else:
        thought = f"I look for the {asked[2]}. {_gone_through(text)} So {asked[3]}."
        answer, expected = f"The {asked[2]} is {asked[3]}.", asked[3]
        hint, check = f"The text says {asked[3]}.", "holds"
    story = " ".join(one[0] for one in text)
    shape = rng.choice(("{s} {q}", "{s}\n\n{q}", "Read this: {s}\nQuestion: {q}"))
    question = shape.format(s=story, q=asked[1])
    return Problem(question, thought, hint, answer, expected, check)  # type: ignore[arg-type]


def _gone_through(facts: list[tuple[str, str, str, str]]) -> str:
    """What each sentence of a text is about."""
    return f"The text says: {', '.join(f'{what} {value}' for _, _, what, value in facts)}."


def follow_format(rng: Random) -> Problem:
    """An answer in exactly the form that was asked for."""
    words = rng.sample([*_COLOURS, *_ANIMALS, *_JOBS], rng.randint(2, 4))
    listed = ", ".join(words)
    kind = rng.choice(("capitals", "json", "dashes", "only", "repeat", "lines"))
    if kind == "capitals":
        asked, answer = f"Write {words[0]} in capital letters.", words[0].upper()
        spelt = ", ".join(f"{one} {one.upper()}" for one in words[0])
        thought = f"Letter by letter: {spelt}. So {answer}."
    elif kind == "json":
        asked = f"Write these words as a JSON list: {listed}"
        answer = "[" + ", ".join(f'"{word}"' for word in words) + "]"
        thought = f"There are {len(words)} words. Each gets quotes, in square brackets."
    elif kind == "dashes":
        asked, answer = f"Join these words with dashes: {listed}", "-".join(words)
        thought = "I write the words with dashes between them and nothing else."
    elif kind == "only":
        told = rng.choice(_ANIMALS)
        asked = f"Answer with only one word: which of these is an animal, {told} or table?"
        answer, thought = told, f"A table is no animal, a {told} is. Only one word: {told}."
    elif kind == "repeat":
        n = rng.randint(2, 4)
        asked = f"Write the word {words[0]} {n} times, with spaces."
        answer = " ".join([words[0]] * n)
        thought = f"I write {words[0]} {n} times: {answer}."
    else:
        asked, answer = f"Write these words one per line: {listed}", "\n".join(words)
        thought = "I write each word on a line of its own."
    return Problem(asked, thought, "I keep to the form.", answer, " ".join(answer.split()), "exact")
