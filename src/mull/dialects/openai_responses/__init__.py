"""The OpenAI Responses API and the servers that speak it."""
