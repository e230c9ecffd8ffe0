"""Tasks with numbers: each thought writes out every step that a digit needs."""

from __future__ import annotations

from datetime import date
from random import Random

from training.problem import Problem

__all__ = [
    "add",
    "compare_dates",
    "compare_decimals",
    "convert_units",
    "count_items",
    "count_letters",
    "is_prime",
    "multiply",
    "sort_numbers",
    "subtract",
]

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_LETTERED = (
    "strawberry banana elephant butterfly mississippi programmer bookkeeper committee address"
    " balloon coffee tomorrow umbrella parallel success pepper letter rabbit cherry summer"
    " winter garden window kitchen mountain river island planet computer keyboard chocolate"
    " cinnamon alligator raccoon giraffe penguin sunflower raspberry blueberry necessary"
    " tennessee assessment possession engineer queue onion lemon orange apple grape mango"
    " potato tomato carrot cucumber broccoli spinach pumpkin thinking language sentence"
    " house water money people school family night letter music story friend mother father"
    " number picture question answer morning evening yellow purple orange silver golden happy"
    " little better never after under again something everything nothing because through"
    " beautiful different important interesting information development government university"
    " international communication responsibility possible actually really probably usually"
    " terminal program function variable python javascript database network internet website"
    " message password memory storage machine science history physics chemistry biology"
    " mathematics geography philosophy psychology paris london berlin madrid vienna amsterdam"
    " january february march april june july august september october november december"
    " monday tuesday wednesday thursday friday saturday sunday cat dog horse rabbit tiger lion"
    " zebra monkey dolphin whale shark eagle parrot hello world goodbye thanks please welcome"
    " bottle butter cheese bread sugar pizza pasta salad sandwich breakfast dinner lunch"
    " doctor teacher lawyer nurse painter singer writer dancer soldier captain bicycle"
    " airplane helicopter motorcycle train station airport hospital library restaurant theatre"
).split()
_THINGS = (
    "apple pear plum cat dog bird fish pen book cup chair lamp shoe hat ball tree stone leaf"
    " spoon fork knife plate key coin stamp ring rose car bus train boat"
).split()


def _number(rng: Random, most_digits: int) -> int:
    digits = rng.randint(1, most_digits)
    return rng.randint(10 ** (digits - 1) if digits > 1 else 1, 10**digits - 1)


def _term(rng: Random) -> int:
    return _number(rng, 4 if rng.random() < 0.1 else 3)


def _ask(rng: Random, term: str) -> str:
    forms = (
        *("What is {}?", "{}", "{} = ?", "Calculate {}.", "How much is {}?", "what's {}", "{}?"),
        *("what is {}", "Work out {}.", "Can you calculate {}?", "{} =", "Tell me what {} is."),
    )
    return rng.choice(forms).format(term)


_PLACES = ("ones", "tens", "hundreds", "thousands")


def _columns(*numbers: int) -> list[tuple[str, ...]]:
    """The digits of each place, the ones first; what a number lacks is 0."""
    wide = max(len(str(one)) for one in numbers)
    return list(zip(*(reversed(str(one).zfill(wide)) for one in numbers), strict=True))


def _laid_out(columns: list[tuple[str, ...]]) -> str:
    """The digits by place, from the left, as they are read."""
    named = zip(_PLACES, columns, strict=False)
    return ", ".join(f"{name} {' and '.join(digits)}" for name, digits in [*named][::-1]) + "."


def _noted(said: str, total: int, result: str) -> str:
    """A column with the digit that is written, the one that is carried, and the result so far."""
    carried = f", carry {total // 10}" if total > 9 else ""
    return f"{said}, write {total % 10}{carried}, so far {result}."


def add_steps(a: int, b: int) -> str:
    """The sum, column by column from the right; the result grows to the left."""
    columns = _columns(a, b)
    steps, carry, result = [_laid_out(columns)], 0, ""
    for name, (upper, lower) in zip(_PLACES, columns, strict=False):
        total = int(upper) + int(lower) + carry
        said = f"{name.title()}: {upper} + {lower}{' + 1' if carry else ''} = {total}"
        carry = total // 10
        result = f"{total % 10}{result}"
        steps.append(_noted(said, total, result))
    if carry:
        steps.append(f"Write 1, so far 1{result}.")
    return " ".join(steps)


def add(rng: Random) -> Problem:
    """Addition with carrying."""
    a, b = _term(rng), _term(rng)
    term = f"{a} + {b}"
    asked = rng.choice((term, f"{a}+{b}", f"{a} plus {b}"))
    return Problem(
        _ask(rng, asked),
        f"{term}: {add_steps(a, b)} So {a + b}.",
        f"{term} is {a + b}.",
        f"{term} = {a + b}",
        str(a + b),
    )


def subtract_steps(a: int, b: int) -> str:
    """The difference, column by column from the right; a is not less than b."""
    columns = _columns(a, b)
    steps, borrowed, result = [_laid_out(columns)], 0, ""
    for name, (digit, lower) in zip(_PLACES, columns, strict=False):
        upper = int(digit) - borrowed
        said = f"{name.title()}: {f'{digit} - 1 = {upper}, ' if borrowed else ''}"
        borrowed = 1 if upper < int(lower) else 0
        if borrowed:
            said += f"{upper} is less than {lower}, borrow, "
            upper += 10
        left = upper - int(lower)
        result = f"{left}{result}"
        steps.append(f"{said}{upper} - {lower} = {left}, so far {result}.")
    return " ".join(steps)


def subtract(rng: Random) -> Problem:
    """Subtraction with borrowing; now and then below zero."""
    b, a = sorted((_term(rng), _term(rng)))
    steps = subtract_steps(a, b)
    if a > b and rng.random() < 0.08:
        steps = f"{a} is more than {b}, so the result is negative: {a} - {b}. {steps}"
        a, b = b, a
    term = f"{a} - {b}"
    asked = rng.choice((term, f"{a}-{b}", f"{a} minus {b}"))
    return Problem(
        _ask(rng, asked),
        f"{term}: {steps} So {a - b}.",
        f"{term} is {a - b}.",
        f"{term} = {a - b}",
        str(a - b),
    )


def multiply_steps(a: int, b: int) -> str:
    """The product of a number and one digit, column by column from the right."""
    columns = _columns(a)
    steps, carry, result = [_laid_out(columns)], 0, ""
    for name, (digit,) in zip(_PLACES, columns, strict=False):
        product = int(digit) * b
        total = product + carry
        said = f"{name.title()}: {digit} x {b} = {product}"
        if carry:
            said += f", {product} + {carry} = {total}"
        carry = total // 10
        result = f"{total % 10}{result}"
        steps.append(_noted(said, total, result))
    if carry:
        steps.append(f"Write {carry}, so far {carry}{result}.")
    return " ".join(steps)


def _multiply_tens(a: int, b: int) -> str:
    """The product of two numbers of two digits: the tens and the ones apart, then the sum."""
    tens, ones = divmod(b, 10)
    first = f"{b} is {tens * 10} and {ones}. {a} x {tens} = {a * tens}, so {a * tens * 10}."
    if not ones:
        return first
    summed = f"{a * tens * 10} + {a * ones}"
    steps = add_steps(a * tens * 10, a * ones)
    return f"{first} {a} x {ones}: {multiply_steps(a, ones)} {summed}: {steps}"


def multiply(rng: Random) -> Problem:
    """A number of up to three digits times one digit, and now and then two of two digits."""
    a, b = _number(rng, 3), rng.randint(2, 9)
    sign = rng.choice(("x", "*", "times"))
    if rng.random() < 0.12:
        a, b = rng.randint(11, 99), rng.randint(11, 30)
        asked, steps = f"{a} {sign} {b}", _multiply_tens(a, b)
    else:
        asked = f"{a} {sign} {b}" if rng.random() < 0.7 else f"{b} {sign} {a}"
        steps = multiply_steps(a, b)
    term = f"{a} x {b}"
    return Problem(
        _ask(rng, asked),
        f"{term}: {steps} So {a * b}.",
        f"{term} is {a * b}.",
        f"{term} = {a * b}",
        str(a * b),
    )


def is_prime(rng: Random) -> Problem:
    """Primality below 150, by trial division with the usual rules."""
    number = rng.choice((rng.randint(2, 149), rng.randrange(11, 150, 2)))
    steps, divisor = [f"{number}:"], 0
    for tried in (2, 3, 5, 7, 11):
        if tried * tried > number:
            steps.append(f"{tried} x {tried} = {tried * tried} is more than {number}, stop.")
            break
        steps.append(_tried(number, tried))
        if number % tried == 0:
            divisor = tried
            break
    if divisor:
        end, verdict = f"{divisor} divides {number}: not prime.", "No"
        answer = f"No, {number} is not prime: it is {divisor} x {number // divisor}."
    else:
        end, verdict = f"Nothing divides {number}: prime.", "Yes"
        answer = f"Yes, {number} is prime."
    forms = (
        *("Is {} prime?", "Is {} a prime number?", "Is the number {} prime?", "is {} a prime"),
        *("Is {} a prime number or not?", "Tell me if {} is prime.", "Check whether {} is prime."),
    )
    return Problem(
        rng.choice(forms).format(number), " ".join([*steps, end]), end, answer, verdict, "begins"
    )


def _tried(number: int, divisor: int) -> str:
    """One division: by the last digit, by the sum of the digits, or with a remainder."""
    fits = number % divisor == 0
    product = f"{number} = {divisor} x {number // divisor}"
    if divisor in (2, 5):
        last = f"by {divisor}: last digit {number % 10}"
        return f"{last}, yes, {product}." if fits else f"{last}, no."
    if divisor == 3:
        digits = str(number)
        total = sum(map(int, digits))
        summed = f"{' + '.join(digits)} = {total}" if len(digits) > 1 else f"{number}"
        return f"by 3: {summed}, yes, {product}." if fits else f"by 3: {summed}, no."
    rest = number % divisor
    return f"by {divisor}: {product} + {rest}, {'yes' if fits else 'no'}."


def compare_decimals(rng: Random) -> Problem:
    """Which of two decimals is larger, place by place."""
    whole = rng.randint(0, 20)
    other = whole if rng.random() < 0.7 else rng.randint(0, 20)
    a, b = (f"{one}.{_digits(rng)}" for one in (whole, other))
    if float(a) == float(b):
        b += "1"
    steps = [f"Before the point: {whole} and {other}."]
    if whole == other:
        left, right = (one.partition(".")[2] for one in (a, b))
        for place in range(max(len(left), len(right))):
            x, y = (one[place] if place < len(one) else "0" for one in (left, right))
            steps.append(f"Place {place + 1}: {x} and {y}.")
            if x != y:
                break
            steps[-1] = steps[-1][:-1] + ", the same."
    else:
        x, y = str(whole), str(other)
    more, which = (a, "first") if float(a) > float(b) else (b, "second")
    steps.append(f"{max(int(x), int(y))} is more, the {which}. So {more}.")
    forms = (
        *("Which is larger, {} or {}?", "Which is bigger: {} or {}?", "{} or {}: which is more?"),
        *("Compare {} and {}: which is larger?", "Which number is greater, {} or {}?"),
    )
    asked = rng.choice(forms).format(a, b)
    return Problem(asked, " ".join(steps), f"{more} is more.", f"{more} is larger.", more)


def _digits(rng: Random) -> str:
    return "".join(str(rng.randint(0, 9)) for _ in range(rng.randint(1, 2))) + str(
        rng.randint(1, 9)
    ) * rng.randint(0, 1)


def compare_dates(rng: Random) -> Problem:
    """Which of two dates comes first: the year, then the month, then the day."""
    days = [_date(rng)]
    while len(days) < 2 or days[0] == days[1]:
        other = _date(rng)
        if rng.random() < 0.6:
            other = other.replace(year=days[0].year)
        if rng.random() < 0.3:
            other = other.replace(month=days[0].month)
        days = [days[0], other]
    first, second = days
    written = [f"{d.day} {_MONTHS[d.month - 1]} {d.year}" for d in days]
    steps = [f"Years: {first.year} and {second.year}."]
    if first.year == second.year:
        names = [_MONTHS[d.month - 1] for d in days]
        steps[-1] = steps[-1][:-1] + ", the same."
        steps.append(f"Months: {names[0]} is {first.month}, {names[1]} is {second.month}.")
        if first.month == second.month:
            steps[-1] = steps[-1][:-1] + ", the same."
            steps.append(f"Days: {first.day} and {second.day}.")
        pairs = [(d.month, d.day) for d in days]
        x, y = (pair[first.month == second.month] for pair in pairs)
    else:
        x, y = first.year, second.year
    early, which = (written[0], "first") if first < second else (written[1], "second")
    steps.append(f"{min(x, y)} is less, the {which}.")
    forms = (
        *("Which is earlier, {} or {}?", "Which date comes first: {} or {}?"),
        *("{} or {}: which is earlier?", "Which of these dates is earlier: {} or {}?"),
    )
    asked = rng.choice(forms).format(*written)
    thought = " ".join([*steps, f"So {early} is earlier."])
    return Problem(asked, thought, f"{early} is earlier.", f"{early} is earlier.", early, "begins")


def _date(rng: Random) -> date:
    return date(rng.randint(1950, 2030), rng.randint(1, 12), rng.randint(1, 28))


def count_letters(rng: Random) -> Problem:
    """How often a letter stands in a word: the word is spelt, and the finds are numbered."""
    word = rng.choice(_LETTERED)
    if rng.random() < 0.4:  # any string of letters will do
        word = "".join(rng.choice("abcdeilmnoprstu") for _ in range(rng.randint(3, 9)))
    letter = rng.choice(word)
    count, spelt = 0, []
    for one in word:
        count += one == letter
        spelt.append(f"{one} {count}" if one == letter else one)
    forms = (
        'How many times does the letter "{}" appear in "{}"?',
        "How many {}'s are in {}?",
        "How many letters {} are in the word {}?",
        "Count the letter {} in {}.",
        "How many {} are there in {}?",
        "how many times is {} in {}",
    )
    times = f"{count} time{'' if count == 1 else 's'}"
    return Problem(
        rng.choice(forms).format(letter, word),
        f"{', '.join(spelt)}. So {count}.",
        f"{letter} stands there {times}.",
        f'The letter {letter} is in "{word}" {times}.',
        str(count),
    )


def count_items(rng: Random) -> Problem:
    """How many things a list holds: they are numbered one by one."""
    items = [rng.choice(_THINGS) for _ in range(rng.randint(2, 9))]
    numbered = ", ".join(f"{n} {item}" for n, item in enumerate(items, 1))
    forms = (
        "How many items are in this list: {}?",
        "How many words are here: {}?",
        "Count these: {}.",
    )
    asked = rng.choice(forms).format(", ".join(items))
    n = len(items)
    return Problem(asked, f"{numbered}. So {n}.", f"There are {n}.", f"There are {n}.", str(n))


def sort_numbers(rng: Random) -> Problem:
    """Sorting by taking out the smallest again and again, found by going through what is left."""
    numbers = rng.sample(range(1, 100), rng.randint(3, 5))
    left, steps = list(numbers), []
    while len(left) > 1:
        least, compared = left[0], []
        for other in left[1:]:
            smaller = min(least, other)
            compared.append(f"{least} or {other}: {smaller}")
            least = smaller
        left.remove(least)
        steps.append(f"{', '.join(compared)}. Take {least}, left {', '.join(map(str, left))}.")
    ordered = ", ".join(map(str, sorted(numbers)))
    forms = (
        *("Sort these numbers: {}", "Sort from smallest to largest: {}.", "Put in order: {}"),
        *("Sort {}", "Sort these numbers in ascending order: {}", "Order these numbers: {}."),
    )
    asked = rng.choice(forms).format(", ".join(map(str, numbers)))
    thought = f"{' '.join(steps)} So {ordered}."
    return Problem(asked, thought, f"In order: {ordered}.", ordered, ordered, "exact")


_UNITS = (
    ("km", "m", 1000),
    ("m", "cm", 100),
    ("cm", "mm", 10),
    ("kg", "g", 1000),
    ("litres", "ml", 1000),
    ("hours", "minutes", 60),
    ("minutes", "seconds", 60),
    ("days", "hours", 24),
    ("weeks", "days", 7),
    ("years", "months", 12),
)


_TO_SMALL = (
    "How many {small} are in {n} {large}?",
    "Convert {n} {large} to {small}.",
    "{n} {large} in {small}?",
)
_TO_LARGE = ("How many {large} are {n} {small}?", "Convert {n} {small} to {large}.")


def convert_units(rng: Random) -> Problem:
    """A whole number of one unit in a smaller one, and back."""
    large, small, factor = rng.choice(_UNITS)
    n = rng.randint(2, 9) if factor in (24, 7, 12, 60) else rng.randint(2, 99)
    product = n * factor
    rule = f"1 {large.removesuffix('s')} is {factor} {small}."
    if rng.random() < 0.65:
        asked = rng.choice(_TO_SMALL).format(small=small, n=n, large=large)
        step = f"{rule} {_by_factor(n, factor)} So {product} {small}."
        said = f"{n} {large} = {product} {small}"
        return Problem(asked, step, f"{n} x {factor} = {product}.", said, str(product))
    asked = rng.choice(_TO_LARGE).format(small=small, n=product, large=large)
    step = f"{rule} {_back(n, factor)} So {n} {large}."
    said = f"{product} {small} = {n} {large}"
    return Problem(asked, step, f"{product} / {factor} = {n}.", said, str(n))


def _by_factor(n: int, factor: int) -> str:
    if factor in (10, 100, 1000):
        zeros = len(str(factor)) - 1
        noted = f"{zeros} zero{'s' if zeros > 1 else ''}"
        return f"{n} with {noted} behind it: {n} x {factor} = {n * factor}."
    if factor == 60:
        return f"{n} x 6 = {n * 6}, so {n} x 60 = {n * 60}."
    if factor in (24, 12):
        tens, ones = factor - factor % 10, factor % 10
        return (
            f"{n} x {tens} = {n * tens}, {n} x {ones} = {n * ones},"
            f" {n * tens} + {n * ones} = {n * factor}."
        )
    return f"{n} x {factor} = {n * factor}."


def _back(n: int, factor: int) -> str:
    product = n * factor
    if factor in (10, 100, 1000):
        zeros = len(str(factor)) - 1
        return f"{product} without {zeros} zero{'s' if zeros > 1 else ''}: {n}."
    return f"{n} x {factor} = {product}."
