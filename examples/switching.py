"""A conversation that outlives its process and changes models; each gets its own thinking back."""

import sys

import mull

question, model = sys.argv[1:]
with mull.open_session("trip", model=model) as session:
    print(session.ask(question).text)
