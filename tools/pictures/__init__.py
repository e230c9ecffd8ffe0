"""Pictures of mull at work, made from real runs: `python -m tools.pictures [NAME…]`."""
