"""The values that all other packages use: no I/O, no decisions."""
