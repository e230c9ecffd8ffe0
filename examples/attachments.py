"""Ask about a picture and a PDF."""

import sys

import mull

question = ["Does the chart agree with the report?", *map(mull.file, sys.argv[1:])]
result = mull.ask(question, "anthropic/claude-haiku-4-5")
print(result.text)
for note in result.notes:
    if note.warning:
        print("Note:", note.text)
