"""The reasoning fidelity suite: cases as data, adapters for many clients, and what builds them."""
