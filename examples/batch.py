"""Answer 200 questions, twenty at a time. Run it again, and it asks only what has no answer yet."""

import mull

QUESTIONS = [f"What is {number} squared?" for number in range(1, 201)]

batch = mull.batch(QUESTIONS, "deepseek/deepseek-v4", concurrency=20, file="answers.jsonl")
for one in batch:
    if one.error is not None:
        print(f"{one.item}: {one.error}")
print(batch.progress)
