"""mull keeps a model's thinking."""

from mull._version import __version__

__all__ = ["__version__"]
