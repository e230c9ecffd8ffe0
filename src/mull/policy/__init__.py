"""Pure decisions: what is sent, what is asked of the model, and why."""
