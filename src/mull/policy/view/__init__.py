"""Which parts of a log a request contains, and in which form."""
