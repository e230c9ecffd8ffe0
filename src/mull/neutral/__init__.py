"""Values that everything else speaks in: no I/O, no decisions."""
