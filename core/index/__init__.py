"""Which segment paths are cached, which of them serves a set of blocks best, and what should follow it."""

from core.index.context_index import Company, ContextIndex, PathMatch
from core.index.order import OrderStatistics

__all__ = ["Company", "ContextIndex", "OrderStatistics", "PathMatch"]
