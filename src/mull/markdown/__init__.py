"""Markdown read once for every place that shows it: blocks and marks as events, no drawing."""
