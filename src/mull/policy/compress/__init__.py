"""What a summary replaces."""
