"""The database: documents, conversations, metrics. One connection per thread; see ``database.py``."""
