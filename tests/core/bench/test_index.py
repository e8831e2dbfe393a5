"""The benchmark of the index runs and tells what it should; no time is tested."""

import pytest

from core.bench.index import measure
from core.errors import SettingsError


def test_a_small_run_tells_every_figure():
    result = measure(contexts=300, k=15)
    assert result["contexts"] == 300
    assert result["nodes"] > 300
    for name in ("align_us_p50", "align_us_p99", "insert_us_p50", "evict_us_p50"):
        assert result[name] > 0
    assert result["align_us_p99"] >= result["align_us_p50"]
    assert {"bytes_per_context", "offline_s", "offline_peak_mb"} <= set(result)


def test_one_block_a_context():
    assert measure(contexts=20, k=1)["k"] == 1


def test_more_blocks_a_context_than_a_few_documents_hold():
    assert measure(contexts=10, k=80)["nodes"] >= 80


@pytest.mark.parametrize(("contexts", "k"), [(0, 15), (10, 0), (-1, 5)])
def test_what_makes_no_sense_is_refused(contexts, k):
    with pytest.raises(SettingsError):
        measure(contexts=contexts, k=k)
