"""What a summary stands for."""
