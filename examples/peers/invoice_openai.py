"""The same with the openai SDK."""

from datetime import date

from openai import OpenAI
from pydantic import BaseModel
from pydantic_core import from_json

LETTER = """Dear customer, for the two teapots (20 euros each) and one kettle (35.50 euros) you
bought on 3 March 2026 we ask you to pay 75.50 euros within 14 days. Kind regards, Brew & Co."""


class Item(BaseModel):
    name: str
    count: int
    euros: float


class Invoice(BaseModel):
    seller: str
    bought: date
    items: list[Item]
    total: float


text = ""
with OpenAI().responses.stream(
    model="gpt-5",
    input=f"Read this invoice: {LETTER}",
    text_format=Invoice,
    reasoning={"effort": "medium", "summary": "auto"},
) as stream:
    for event in stream:
        if event.type == "response.output_text.delta":
            text += event.delta
            partial = from_json(text, allow_partial=True)
            print(f"\r{len(partial.get('items', ()))} items", end="")
    response = stream.get_final_response()
invoice = response.output_parsed
if invoice is None:
    raise ValueError(f"no invoice: {response.output_text}")
thoughts = [
    part.text for item in response.output if item.type == "reasoning" for part in item.summary
]
print(f"\n{invoice.seller}, {invoice.bought:%d %B %Y}: {invoice.total:.2f} euros")
print("Thinking:", "\n\n".join(thoughts))
