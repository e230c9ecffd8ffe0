"""What was said, as it was said."""
