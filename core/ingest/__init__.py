"""Files to documents: which files, their text with page positions, blocks. ``library.py`` is the way in."""
