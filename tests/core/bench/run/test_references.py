"""Passages whole and shortened behind the same question: the likelihoods are those of whole prompts."""

import pytest

from core.bench.run import references
from core.bench.run.quality import assess
from core.bench.run.questions import Asked
from core.bench.run.sensitivity import blocks_of, read, writer_for
from core.config import Settings
from core.engine.probe import ProbingEngine
from core.plan.annotate import annotation
from core.prompt import lay_out
from core.types import Block, Passage, Place

_CLAUSES = [
    f"{n}. The tenant of room {n} keeps the {what} in good repair, and pays for the damage that was done to it "
    "by negligence, but not for what wore out in use.\n"
    for n, what in enumerate(("kitchen", "roof", "cellar", "garden gate", "stairs", "lift"), 1)
]


def asked(qid, *texts):
    passages = tuple(
        Passage(Block.of(text), (Place(n, f"{n}.txt", f"/{n}.txt", 0, 0, len(text), None),), 0.0, "", 0)
        for n, text in enumerate(texts)
    )
    return Asked(qid, qid, "Who keeps the roof in repair?", passages, answers=("the tenant of room 2",))


@pytest.mark.model
def test_only_passages_that_share_text_are_read_and_each_way_is_read_as_alone(tiny_model):
    whole = "".join(_CLAUSES)
    edited = whole.replace("cellar", "attic")
    shared = asked("shared", whole, edited)
    questions = [asked("apart", "One text.", "Another one."), shared, asked("one", whole)]
    engine = ProbingEngine(tiny_model, Settings(n_ctx=2048))
    try:
        assert references.measure(engine, questions[:1], 5) is None
        found = references.measure(engine, questions, 5)
        assert found["questions"] == 1
        assert found["tokens_shortened"] < 0.8 * found["tokens_whole"]
        assert set(found["kinds"]) == {"whole", "shortened"}
        assert found["kinds"]["whole"]["difference"] == 0
        assert len({kind["logprob"] for kind in found["kinds"].values()}) == 2

        writer = writer_for(engine)
        said = annotation(shared.passages, (), moved=False)
        prompt = lay_out([writer.head(), *blocks_of(writer, shared), writer.ask(said, shared.text)], b"")
        engine.clear()
        read(engine, prompt.chunks)
        alone = assess(engine, shared, prompt.n_tokens, answers=False).logprob
        assert found["kinds"]["whole"]["logprob"] == alone
    finally:
        engine.close()
