"""What the bench of de-duplication prints, on a few documents and the real tokenizer."""

import gzip
import json

import pytest

from core.bench.dedup import measure
from core.config import Settings
from core.errors import KnownError

pytestmark = pytest.mark.model


def write(path, rows):
    path.parent.mkdir(exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def test_families_contracts_and_passages_are_measured(tmp_path, tiny_model):
    shared = " ".join(f"In year {n} the tenant repaired the roof of house {n * 7}." for n in range(40))
    write(
        tmp_path / "templates" / "docs.jsonl.gz",
        [
            {"family": "alike", "text": f"Version one.\n\n{shared}\n\nSigned by Ada."},
            {"family": "other", "text": "Nothing of it stands anywhere else."},
            {"family": "alike", "text": f"Version two.\n\n{shared}\n\nSigned by Bob."},
        ],
    )
    write(
        tmp_path / "mtrag" / "passages.jsonl.gz",
        [{"passage_id": "a", "text": f"{shared} A."}, {"passage_id": "b", "text": f"B. {shared}"}],
    )
    write(tmp_path / "traces" / "mtrag_bm25_standalone.jsonl.gz", [{"blocks": ["a", "b", "gone"]}])
    result = measure(tmp_path, Settings(model=str(tiny_model)))
    alike, other = result["families"]["alike"], result["families"]["other"]
    assert alike["tokens_after"] < 0.7 * alike["tokens_before"]
    assert other["tokens_after"] == other["tokens_before"]
    assert result["expand_exact"] is True
    assert result["ms_45kb_p50"] > 0
    assert result["mb_per_s"] > 0
    assert result["mtrag"]["contexts"] == result["mtrag"]["shortened_contexts"] == 1
    assert result["mtrag"]["evidence_kept"] == 1
    shares = result["contracts"]
    assert shares["clauses_20"] >= 0.6
    assert shares["lines_1"] >= 0.6
    assert shares["lines_1_no_newlines"] >= 0.6
    assert shares["lines_5"] >= 0.35
    assert shares["lines_5_no_newlines"] >= 0.35


def test_a_folder_without_documents_is_refused(tmp_path):
    with pytest.raises(KnownError, match=r"docs\.jsonl\.gz"):
        measure(tmp_path, Settings())
