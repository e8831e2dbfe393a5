from pathlib import Path

import numpy as np
import pytest

from core.store.database import open_database
from core.store.documents import DocumentStore, NewDocument
from core.types import (
    Answer,
    AnswerSentence,
    Block,
    ChunkView,
    Citation,
    FinishReason,
    MissReason,
    Passage,
    Place,
    RequestMetrics,
    Segment,
    SegmentKind,
    Tier,
)


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def db(data_dir: Path):
    with open_database(data_dir) as database:
        yield database


@pytest.fixture
def a_document(db):
    """A document that exists, with no blocks; its id."""
    return DocumentStore(db).save(NewDocument("/a/some.txt", "some.txt")).id


@pytest.fixture
def an_answer(a_document):
    """Makes (answer, ledger, tokenizer id) that quote a block."""

    def make(block: Block, document_id: int = a_document) -> tuple[Answer, list[Segment], str]:
        place = Place(document_id, "secret.txt", "/a/secret.txt", 0, 0, len(block.text), 3)
        quote = block.text[:20]
        answer = Answer(
            text="An answer.",
            citations=(Citation(block.id, "secret.txt", "/a/secret.txt", document_id, 3, quote, 1),),
            sentences=(AnswerSentence(0, 10, (1,)),),
            passages=(Passage(block, (place,), 1.5, quote, 0),),
            n_found=4,
            finish=FinishReason.STOP,
            metrics=RequestMetrics(n_prompt_tokens=9, miss_reason=MissReason.EVICTED, ttft_ms=1.25),
            chunks=(ChunkView("secret.txt, p. 3", 128, Tier.LIVE),),
        )
        ledger = [
            Segment(SegmentKind.HEAD, np.array([1, 2], dtype=np.int32)),
            Segment(SegmentKind.BLOCK, np.arange(100, dtype=np.int32), block.id),
            Segment(SegmentKind.ANSWER, np.array([], dtype=np.int32)),
        ]
        return answer, ledger, "tokenizer"

    return make
