"""What a refusal teaches."""
