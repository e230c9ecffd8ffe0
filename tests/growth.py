"""A bound for work that has to grow with its input alone.

Sizes are chosen so that work that grows with the square takes minutes, and linear work a second
at most: the bound tells one from the other on any machine and measures nothing.
"""

import signal
from contextlib import contextmanager

BOUND = 20  # seconds of the processor


@contextmanager
def ends():
    def too_long(*_):
        raise AssertionError(f"not done after {BOUND} s: the work grows faster than its input")

    before = signal.signal(signal.SIGVTALRM, too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, BOUND)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
