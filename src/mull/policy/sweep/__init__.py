"""What thinking buys: the same tasks for several models and levels, graded and summed up."""
