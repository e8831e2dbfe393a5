"""What `slipstream bench run` measured, for people: a table on the terminal and a page that stands alone."""

from core.bench.report.page import write_html
from core.bench.report.table import table

__all__ = ["table", "write_html"]
