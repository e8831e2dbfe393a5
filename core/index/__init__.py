"""Which segment paths are cached, and which of them serves a set of blocks best."""

from core.index.context_index import ContextIndex, PathMatch

__all__ = ["ContextIndex", "PathMatch"]
