"""What begins with a slash."""
