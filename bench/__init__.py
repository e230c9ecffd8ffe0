"""Measurements, as ratios against peers and the physical limit, taken in one run."""
