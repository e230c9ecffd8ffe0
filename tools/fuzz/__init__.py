"""Fuzzing of everything that reads foreign bytes; `make fuzz` runs it guided by coverage."""
