"""Pure login flows: what a key or a token is, and where it goes."""
