"""What a rejection teaches."""
