"""Conversations as documents: written for people and programs, read back from both. Pure."""
