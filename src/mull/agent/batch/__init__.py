"""Many questions at once: what is asked, how fast, what is kept, and how far it has come."""
