"""An agent with typed tools: it looks an order up, and refunds it if you approve."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

import mull


class Refund(BaseModel):
    order: int
    euros: Annotated[float, Field(gt=0, le=100)]
    reason: Literal["damaged", "late", "other"]


@mull.tool(changes=False)
def find_order(number: int) -> dict[str, object]:
    """Look an order up by its number."""
    return {"order": number, "item": "teapot", "paid": 40.0, "state": "arrived broken"}


def refund(refund: Refund) -> str:
    """Pay money back."""
    return f"{refund.euros:.2f} euros paid back for order {refund.order}"


def approve(request: mull.ApprovalRequest) -> bool:
    return input(f"{request.tool}({request.arguments}) Allow? [y/n] ") == "y"


agent = mull.Conversation(
    "moonshotai/kimi-k2-thinking", tools=[find_order, refund], approve=approve
)
print(agent.ask("My teapot, order 1234, arrived broken. I want my money back.").text)
