"""Blocks moved to other places: approximate where they were moved, exact where they were not."""

import bench_data
import pytest

from core.bench.run.harness import Options, measure
from core.bench.run.workloads import Source
from core.config import Settings
from core.errors import SettingsError

pytestmark = pytest.mark.model


@pytest.fixture
def run(tmp_path, tiny_model):
    bench_data.library(tmp_path, n_documents=1)
    settings = Settings(model=str(tiny_model), n_ctx=1024, ram_cache_mb=200, ssd_cache_mb=0)

    def run(*policies, k=3):
        source = Source(tmp_path, "made_document", k=k)
        return measure(Options("multi-session", source, policies), settings)["policies"]

    return run


def test_moved_blocks_are_reused_wherever_they_stood_and_change_the_answer(run):
    found = run("none", "prefix", "blend:0", "blend:8")
    assert found["blend:0"]["kl"] > 1e-4
    assert found["blend:0"]["hit_ratio"] > found["prefix"]["hit_ratio"]
    assert found["blend:8"]["hit_ratio"] < found["blend:0"]["hit_ratio"]
    assert found["blend:0"]["prompt_tokens"] == found["none"]["prompt_tokens"]
    assert found["blend:0"]["gold_logprob_per_token"] != found["none"]["gold_logprob_per_token"]


def test_what_is_computed_again_whole_is_exact(run):
    found = run("none", "blend:5000")
    assert found["blend:5000"]["kl"] == 0
    assert found["blend:5000"]["gold_logprob_per_token"] == found["none"]["gold_logprob_per_token"]


def test_a_block_that_stays_in_its_place_is_exact(run):
    found = run("none", "blend:0", k=1)
    assert found["blend:0"]["hit_ratio"] > 0.2
    assert found["blend:0"]["kl"] == 0


def test_a_number_is_wanted(run):
    with pytest.raises(SettingsError, match="number of tokens"):
        run("blend:many")
