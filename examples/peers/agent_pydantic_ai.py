"""The same with pydantic-ai."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolDenied
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.moonshotai import MoonshotAIProvider


class Refund(BaseModel):
    order: int
    euros: Annotated[float, Field(gt=0, le=100)]
    reason: Literal["damaged", "late", "other"]


agent = Agent(
    OpenAIChatModel("kimi-k2-thinking", provider=MoonshotAIProvider()),
    output_type=[str, DeferredToolRequests],
)


@agent.tool_plain
def find_order(number: int) -> dict[str, object]:
    """Look an order up by its number."""
    return {"order": number, "item": "teapot", "paid": 40.0, "state": "arrived broken"}


@agent.tool_plain(requires_approval=True)
def refund(refund: Refund) -> str:
    """Pay money back."""
    return f"{refund.euros:.2f} euros paid back for order {refund.order}"


run = agent.run_sync("My teapot, order 1234, arrived broken. I want my money back.")
while isinstance(run.output, DeferredToolRequests):
    answers = DeferredToolResults()
    for call in run.output.approvals:
        allowed = input(f"{call.tool_name}({call.args}) Allow? [y/n] ") == "y"
        answers.approvals[call.tool_call_id] = True if allowed else ToolDenied("The user refused.")
    run = agent.run_sync(message_history=run.all_messages(), deferred_tool_results=answers)
print(run.output)
