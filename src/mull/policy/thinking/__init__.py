"""What is asked of a model's thinking."""
