"""The same with litellm."""

import asyncio
import json
from pathlib import Path

import litellm

QUESTIONS = [f"What is {number} squared?" for number in range(1, 201)]
FILE = Path("answers.jsonl")


async def answer(question: str, slots: asyncio.Semaphore) -> float | None:
    async with slots:
        try:
            response = await litellm.acompletion(
                model="deepseek/deepseek-v4",
                messages=[{"role": "user", "content": question}],
                num_retries=3,
            )
        except Exception as error:
            print(f"{question}: {error}")
            return None
    message = response.choices[0].message
    line = {
        "question": question,
        "text": message.content,
        "thinking": getattr(message, "reasoning_content", None),
    }
    with FILE.open("a") as file:
        file.write(json.dumps(line) + "\n")
    try:
        return litellm.completion_cost(response)
    except Exception:  # it knows no price
        return 0.0


async def main() -> None:
    lines = FILE.read_text().splitlines() if FILE.exists() else []
    answered = {json.loads(line)["question"] for line in lines}
    slots = asyncio.Semaphore(20)
    waiting = [answer(one, slots) for one in QUESTIONS if one not in answered]
    costs = await asyncio.gather(*waiting)
    failed = costs.count(None)
    print(f"{len(QUESTIONS)}/{len(QUESTIONS)}, {failed} failed, {sum(filter(None, costs))} dollars")


asyncio.run(main())
