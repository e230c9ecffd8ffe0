"""What of a log a request shows, and in which form."""
