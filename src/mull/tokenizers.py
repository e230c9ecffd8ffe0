"""The one home of the tokenizer library."""
