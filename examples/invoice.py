"""Read an invoice into a typed value, and show it while it arrives."""

from datetime import date

from pydantic import BaseModel

import mull

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


with mull.stream(f"Read this invoice: {LETTER}", "openai/gpt-5", schema=Invoice) as stream:
    for _ in stream:
        if stream.partial:
            print(f"\r{len(stream.partial.get('items', ()))} items", end="")
invoice: Invoice = stream.result.value
print(f"\n{invoice.seller}, {invoice.bought:%d %B %Y}: {invoice.total:.2f} euros")
print("Thinking:", stream.result.thinking)
