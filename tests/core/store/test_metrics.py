import dataclasses

from core.store.metrics import MetricsStore
from core.types import MissReason, RequestMetrics


def test_every_field_is_a_column_and_comes_back(db):
    store = MetricsStore(db)
    first = RequestMetrics(n_prompt_tokens=5, n_live_tokens=5, hit_ratio=1.0)
    second = RequestMetrics(
        **{
            field.name: {"int": 3, "float": 2.5, "str": "words"}.get(field.type.__name__, MissReason.EVICTED)
            for field in dataclasses.fields(RequestMetrics)
        }
    )
    store.record(first, None)
    store.record(second, None)
    assert store.recent(10) == (second, first)
    assert store.recent(1) == (second,)
    columns = {row[1] for row in db.rows("PRAGMA table_info(requests)")}
    assert columns == {"id", "ts", "turn_id"} | {field.name for field in dataclasses.fields(RequestMetrics)}
