"""What every question cost: one row each."""

import dataclasses
import time

from core.store.answers import metrics_from
from core.store.database import Database
from core.types import RequestMetrics

_FIELDS = tuple(field.name for field in dataclasses.fields(RequestMetrics))
_COLUMNS = ", ".join(_FIELDS)


class MetricsStore:
    def __init__(self, db: Database) -> None:
        self._db = db

    def record(self, metrics: RequestMetrics, turn_id: int | None) -> None:
        """Keep the counts of a question. ``turn_id`` is None for one that gave no answer."""
        values = [getattr(metrics, name) for name in _FIELDS]
        marks = ", ".join("?" * (len(_FIELDS) + 2))
        with self._db.write():
            self._db.run(
                f"INSERT INTO requests (ts, turn_id, {_COLUMNS}) VALUES ({marks})",  # noqa: S608 - our own names
                [time.time(), turn_id, *values],
            )

    def recent(self, n: int) -> tuple[RequestMetrics, ...]:
        """The last ``n`` questions, the newest first."""
        rows = self._db.rows(f"SELECT {_COLUMNS} FROM requests ORDER BY id DESC LIMIT ?", [n])  # noqa: S608
        return tuple(metrics_from(dict(zip(_FIELDS, row, strict=True))) for row in rows)
