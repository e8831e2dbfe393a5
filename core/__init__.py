"""Slipstream without its window: everything that can be used and tested without Qt."""

__version__ = "0.2.0"
