"""A question to the passages that may answer it, in relevance order. ``search.py`` is the way in."""
