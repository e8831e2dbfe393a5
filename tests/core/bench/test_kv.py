"""The comparison of KV types runs on a real model and refuses what it cannot use."""

import gzip
import json

import pytest

from core.bench.kv import measure
from core.config import Settings
from core.errors import KnownError, SettingsError

pytestmark = pytest.mark.model


def write(path, rows):
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def folder(tmp_path):
    texts = [f"Document {n} says that the rent of house {n} is {n}00 euros a month." for n in range(4)]
    write(tmp_path / "docs.jsonl.gz", [{"doc_id": f"d{n}", "text": text} for n, text in enumerate(texts)])
    write(
        tmp_path / "blocks.jsonl.gz",
        [{"block_id": f"d{n}#0", "doc_id": f"d{n}", "start": 0, "end": len(t)} for n, t in enumerate(texts)],
    )
    asked = [
        {"question": "What is the rent of house 2?", "answers": ["200 euros"], "gold_block_ids": ["d2#0"]},
        {"question": "And of house 9?", "answers": [], "gold_block_ids": []},
    ]
    write(tmp_path / "questions.jsonl.gz", asked)
    return tmp_path


def test_both_kinds_are_measured_in_pairs(folder, tiny_model):
    result = measure(folder, 5, Settings(model=str(tiny_model), n_ctx=1024))
    assert result["questions"] == 1, "one has no answer to compare with"
    assert result["difference"] == pytest.approx(
        result["q8_0_logprob_per_token"] - result["f16_logprob_per_token"]
    )
    assert result["difference_low"] <= result["difference"] <= result["difference_high"]
    assert 0.5 < result["q8_0_bytes_per_token"] / result["f16_bytes_per_token"] < 0.6


def test_what_cannot_be_used_is_refused(folder, tiny_model, tmp_path_factory):
    settings = Settings(model=str(tiny_model), n_ctx=1024)
    with pytest.raises(SettingsError):
        measure(folder, 0, settings)
    with pytest.raises(KnownError, match="cannot be read"):
        measure(tmp_path_factory.mktemp("empty"), 5, settings)
