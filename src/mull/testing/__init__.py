"""For your own tests: the rules that providers enforce on reasoning, without a provider."""
