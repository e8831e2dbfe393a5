"""Slipstream without its window: everything that can be used and tested without Qt."""

__version__ = "0.3.0"
