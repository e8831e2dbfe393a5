"""One question, whole, on a real model and real documents: exact, counted, fitting, and honest."""

import os
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core.config import Settings, sample_documents
from core.engine.llama import LlamaEngine
from core.engine.protocol import CancelFlag
from core.engine.snapshots import SnapshotStore
from core.engine.ssd_tier import SsdTier
from core.errors import Cancelled, KnownError, PromptTooLong
from core.idle import settle, warm_up
from core.ingest.library import ingest
from core.pipeline import answer
from core.prompt import lay_out
from core.retrieval.search import Searcher
from core.store.database import open_database
from core.store.documents import DocumentStore
from core.types import (
    AnswerDone,
    AnswerText,
    Context,
    FinishReason,
    MissReason,
    PrefillProgress,
    Question,
    Scope,
    Tier,
)
from core.workbench import Workbench

pytestmark = pytest.mark.model
EVERYTHING = Scope()

CONVERSATIONS = (
    ("How much is the rent of flat 3?", "And the deposit?", "When does the tenancy begin?"),
    ("Are dogs allowed in the flat?", "Who repairs the heating?", "What happens if rent is late?"),
    (
        "How do I clean the filter of the dishwasher?",
        "Which programme is for glasses?",
        "What does error E4 mean?",
    ),
    ("What did the allotment meeting decide about water?", "Who was present?", "When is the next meeting?"),
    ("What is the limit for a hotel night?", "Who approves a journey?", "Can I travel first class?"),
    ("How much is the rent of flat 5?", "Is it the same in flat 3?", "What is the notice period?"),
    ("Where does the salt go?", "How often must it be filled?", "What is the water hardness setting?"),
    ("Who is the landlord of flat 5?", "Who is the tenant?", "How is the rent paid?"),
    ("Is smoking allowed?", "May I have a cat in flat 3?", "And may I sublet a room?"),
    ("What do I do before the first wash?", "Where is the rinse aid filled in?", "And what if it leaks?"),
    ("How long does the short programme take?", "How much water does it use?", "Is it for pans?"),
    ("Who pays for taxis?", "Is breakfast paid?", "When must the claim be handed in?"),
    ("What was said about the hedge?", "What does it cost?", "Who takes care of it?"),
    ("How many plots are free?", "Who is on the waiting list?", "What is the yearly fee?"),
    ("Compare the deposits of the two flats.", "Which rent is higher?", "Which tenancy ends first?"),
    ("May I fly business class?", "What if the flight is long?", "Who decides?"),
    ("What is the address of flat 3?", "How many rooms does it have?", "Is there a cellar?"),
)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("library")
    with open_database(folder) as db:
        ingest([sample_documents()], db, cancel=threading.Event(), progress=lambda _: None)
    return folder


@pytest.fixture(scope="module")
def tiny(tiny_model):
    engine = LlamaEngine(tiny_model, Settings(n_ctx=4096))
    yield engine
    engine.close()


@pytest.fixture
def bench(tiny, library):
    with open_database(library) as db:
        yield Workbench(tiny, db)


def ask(
    bench,
    text,
    conversation=None,
    *,
    n=16,
    passages=5,
    scope=EVERYTHING,
    cancel=None,
    context=None,
    budget=1500,
):
    """All events of one question, and its conversation."""
    context = context or Searcher(bench.db).search(text, scope=scope, limit=passages, token_budget=budget)
    question = Question(text, conversation, scope, n)
    events = list(answer(bench, 1, question, context, cancel or CancelFlag()))
    return events, events[-1].conversation_id


def done(events):
    assert isinstance(events[-1], AnswerDone)
    return events[-1].turn.answer


def check_exact(bench, conversations, *, passages, budget, n_tokens):
    """Record the token paths of all conversations run with reuse; replay each cold; compare to the bit."""
    recorded = []
    prefill = bench.cache.prefill

    def recording(prompt, cancel, *, logits=True, **options):
        yield from prefill(prompt, cancel, logits=logits, **options)
        if logits:
            recorded.append((prompt, bench.engine.logits().copy()))

    bench.cache.prefill = recording
    answers = []
    for conversation in conversations:
        id_ = None
        for number, text in enumerate(conversation):
            events, id_ = ask(bench, text, id_, n=n_tokens, passages=passages, budget=budget)
            answers.append(done(events))
            if number == 0:  # one turn builds on a settled answer, the next one on an unsettled one
                settle(bench, id_, CancelFlag())
    assert len(recorded) == 3 * len(conversations)
    assert sum(a.metrics.n_live_tokens for a in answers) > 0.3 * sum(
        a.metrics.n_prompt_tokens for a in answers
    )
    for (prompt, warm), found in zip(recorded, answers, strict=True):
        bench.cache.forget_everything()
        for _ in prefill(prompt, CancelFlag()):
            pass
        cold = bench.engine.logits()
        assert np.array_equal(cold, warm)
        said = []
        while len(said) < n_tokens:
            token = int(np.argmax(bench.engine.logits()))
            if bench.engine.is_end(token):
                break
            said.append(token)
            bench.cache.decode(token, CancelFlag())
        text = b"".join(bench.engine.token_bytes(token) for token in said).decode(errors="replace")
        assert text.strip() == found.text
    metrics = [one.metrics for one in answers]
    return (
        sum(m.n_live_tokens for m in metrics),
        sum(m.n_ram_tokens for m in metrics),
        sum(m.n_ssd_tokens for m in metrics),
        sum(m.n_prefilled_tokens for m in metrics),
    )


@pytest.mark.parametrize(
    ("kv_type", "n", "dedup"), [("f16", 17, "content"), ("q8_0", 6, "blocks"), ("q8_0", 6, "content")]
)
def test_reuse_changes_nothing_cut_down_model(tiny_model, library, tmp_path, kv_type, n, dedup):
    """All tiers on, memory so small that chunks are evicted all the time."""
    engine = LlamaEngine(tiny_model, Settings(n_ctx=4096, kv_type=kv_type))
    ssd = SsdTier(SnapshotStore(tmp_path, 20 << 20, 10**12, pytest.fail))
    try:
        with open_database(library) as db:
            budget = (3 if kv_type == "f16" else 1) << 20
            bench = Workbench(engine, db, ram_budget=budget, ssd=ssd, dedup=dedup)
            bench.cache.rates.loading_pays = lambda *_: True  # two layers are computed faster than loaded
            tiers = check_exact(bench, CONVERSATIONS[:n], passages=3, budget=800, n_tokens=8)
            live, ram, ssd_tokens, prefilled = tiers
            assert min(live, ram + ssd_tokens, prefilled) > 0
    finally:
        ssd.close()
        engine.close()


@pytest.mark.slow
def test_reuse_changes_nothing_embedded_model(embedded_model, library):
    engine = LlamaEngine(embedded_model, Settings(n_ctx=4096))
    try:
        with open_database(library) as db:
            check_exact(Workbench(engine, db), CONVERSATIONS[:7], passages=2, budget=500, n_tokens=8)
    finally:
        engine.close()


def test_counts_add_up_and_match_what_was_shown(bench):
    id_ = None
    for text in CONVERSATIONS[0]:
        events, id_ = ask(bench, text, id_)
        result = done(events)
        metrics = result.metrics
        last = [event for event in events if isinstance(event, PrefillProgress)][-1]
        assert (
            metrics.n_live_tokens + metrics.n_ram_tokens + metrics.n_ssd_tokens + metrics.n_prefilled_tokens
            == metrics.n_prompt_tokens
            == sum(chunk.n_tokens for chunk in result.chunks)
        )
        assert last.n_cached_tokens + last.n_prefilled_tokens == metrics.n_prompt_tokens
        assert sum(c.n_tokens for c in result.chunks if c.tier is Tier.LIVE) == metrics.n_live_tokens
        assert metrics.hit_ratio == metrics.n_live_tokens / metrics.n_prompt_tokens
        assert bench.metrics.recent(1)[0] == metrics
        assert "".join(event.text for event in events if isinstance(event, AnswerText)).strip() == result.text


def test_the_same_question_again_prefills_its_last_chunk_only(bench):
    ask(bench, CONVERSATIONS[0][0])
    events, _ = ask(bench, CONVERSATIONS[0][0])
    result = done(events)
    assert result.metrics.n_prefilled_tokens == result.chunks[-1].n_tokens
    assert result.metrics.miss_reason is MissReason.NEW_QUESTION


def test_the_second_turn_keeps_the_first_turns_prompt(bench):
    events, id_ = ask(bench, CONVERSATIONS[0][0])
    first = done(events).metrics
    second = done(ask(bench, CONVERSATIONS[0][1], id_)[0]).metrics
    assert second.n_live_tokens >= first.n_prompt_tokens
    settle(bench, id_, CancelFlag())
    third = done(ask(bench, CONVERSATIONS[0][2], id_)[0]).metrics
    assert third.n_live_tokens > second.n_prompt_tokens


def test_blocks_are_aligned_with_what_is_cached(bench):
    text = CONVERSATIONS[0][0]
    context = Searcher(bench.db).search(text, scope=EVERYTHING, limit=4, token_budget=1500)
    assert len(context.passages) >= 3
    ask(bench, text, context=context)
    turned = replace(context, passages=context.passages[::-1])
    result = done(ask(bench, text, context=turned)[0])
    assert result.metrics.n_prefilled_tokens == result.chunks[-1].n_tokens
    assert [p.block.id for p in result.passages] == [p.block.id for p in turned.passages]


def test_the_plan_says_what_it_found(bench):
    text = CONVERSATIONS[0][0]
    bench.dedup = "blocks"
    assert done(ask(bench, text)[0]).plan == (), "nothing was cached, nothing was shortened"
    again = done(ask(bench, text)[0])
    assert again.plan[0].startswith(f"Cached path: {len(again.passages)} of {len(again.passages)} passages")


def test_what_the_next_questions_share_stands_in_front(bench):
    bench.cache.forget_everything()
    searcher = Searcher(bench.db)
    text = CONVERSATIONS[0][0]
    context = searcher.search(text, scope=EVERYTHING, limit=4, token_budget=1500)
    last = context.passages[-1]
    waiting = replace(context, passages=(last,))
    question = Question(text, None, EVERYTHING, 4)
    events = list(answer(bench, 1, question, context, CancelFlag(), waiting=[waiting]))
    blocks = [
        s.block_id for _, ledger in bench.conversations.ledger(events[-1].conversation_id) for s in ledger
    ]
    assert next(block for block in blocks if block) == last.block.id


def test_a_miss_names_an_edited_document_and_another_model(tiny, tmp_path):
    folder = tmp_path / "documents"
    folder.mkdir()
    path = folder / "rent.txt"
    stop = threading.Event()
    with open_database(tmp_path / "data") as db:
        path.write_text("The rent is 900 euros a month.")
        ingest([folder], db, cancel=stop, progress=lambda _: None)
        ssd = SsdTier(SnapshotStore(tmp_path / "kv", 50 << 20, 10**10, pytest.fail))
        first = Workbench(tiny, db, ram_budget=50 << 20, ssd=ssd)
        assert done(ask(first, "How much is the rent?")[0]).metrics.miss_reason is MissReason.FIRST_QUESTION
        path.write_text("The rent is 950 euros a month.")
        ingest([folder], db, cancel=stop, progress=lambda _: None)
        edited = done(ask(first, "How much is the rent?")[0]).metrics
        assert (edited.miss_reason, edited.miss_detail) == (MissReason.DOCUMENT_EDITED, "rent.txt")
        first.cache.retire()
        ssd.close()
        ssd = SsdTier(SnapshotStore(tmp_path / "kv", 50 << 20, 10**10, pytest.fail))
        other = Workbench(tiny, db, ram_budget=50 << 20, ssd=ssd)
        other.cache.forget(block_ids=())
        tiny_print = tiny._fingerprint
        try:
            tiny._fingerprint = bytes(16)  # as after an update of llama.cpp
            changed = Workbench(tiny, db, ram_budget=50 << 20, ssd=ssd)
            list(changed.cache.prefill(lay_out([changed.writer.head()], changed.cache.root), CancelFlag()))
            metrics = done(ask(changed, "How much is the rent?")[0]).metrics
            assert metrics.miss_reason is MissReason.MODEL_CHANGED
        finally:
            tiny._fingerprint = tiny_print
            ssd.close()


def test_what_was_learned_outlives_the_program_and_goes_with_its_document(tiny, library):
    with open_database(library) as db:
        bench = Workbench(tiny, db)
        answers = [done(ask(bench, text)[0]) for conversation in CONVERSATIONS[:2] for text in conversation]
        names = {int(passage.block.id, 16) for answer in answers for passage in answer.passages}
        bench.keep_learned()
        again = Workbench(tiny, db)
        order = again.order_of("")
        assert all(order.count(name) for name in names)
        assert again.cache.rates.prefill_token_s.value == bench.cache.rates.prefill_token_s.value
        gone = {answers[0].passages[0].block.id}
        again.forget_blocks(gone)
        assert not Workbench(tiny, db).order_of("").count(int(*gone, 16))
        again.forget_everything()
        assert len(Workbench(tiny, db).order_of("")) == 0


def test_a_block_of_an_earlier_turn_is_referenced_not_repeated(bench):
    text = CONVERSATIONS[0][0]
    events, id_ = ask(bench, text)
    first = done(events)
    second = done(ask(bench, text, id_)[0])
    assert second.metrics.n_deduplicated_tokens > 0
    assert second.metrics.n_prompt_tokens < first.metrics.n_prompt_tokens + 200
    assert len(second.passages) == len(first.passages)


def test_a_full_context_sets_old_turns_aside_and_says_so(tiny_model, library):
    engine = LlamaEngine(tiny_model, Settings(n_ctx=1024))
    try:
        with open_database(library) as db:
            bench, id_, noted = Workbench(engine, db), None, 0
            for conversation in CONVERSATIONS[:3]:
                for text in conversation:
                    events, id_ = ask(bench, text, id_, n=64)
                    result = done(events)
                    assert result.metrics.n_prompt_tokens + 64 <= 1024
                    noted += any("set aside" in note for note in result.notes)
            assert 0 < noted < 9, "compacted once in a while, not at every turn"
    finally:
        engine.close()


def test_what_does_not_fit_is_said(tiny_model, library):
    engine = LlamaEngine(tiny_model, Settings(n_ctx=768))
    try:
        with open_database(library) as db:
            bench = Workbench(engine, db)
            result = done(ask(bench, "rent deposit flat repairs", passages=8, budget=4000, n=32)[0])
            assert any("passages used" in note for note in result.notes)
            with pytest.raises(PromptTooLong, match="does not fit"):
                ask(bench, "word " * 2000, n=32)
    finally:
        engine.close()


def test_stop_before_the_first_word_keeps_what_was_read(bench):
    cancel = CancelFlag()
    text = CONVERSATIONS[1][0]
    context = Searcher(bench.db).search(text, scope=EVERYTHING, limit=5, token_budget=1500)
    events = answer(bench, 1, Question(text), context, cancel)
    seen = [next(events), next(events), next(events)]
    cancel.set()
    with pytest.raises(Cancelled):
        list(events)
    assert bench.cache.n_live_tokens == seen[-1].n_cached_tokens + seen[-1].n_prefilled_tokens > 0
    again = done(ask(bench, text, context=context)[0])
    assert again.metrics.n_live_tokens >= seen[-1].n_prefilled_tokens


def test_stop_within_the_answer_keeps_what_was_said(bench):
    cancel = CancelFlag()
    text = CONVERSATIONS[1][0]
    said, final = [], None
    for event in answer(bench, 1, Question(text, max_tokens=50), Context((), 0, 0.0), cancel):
        if isinstance(event, AnswerText):
            said.append(event.text)
            if len(said) == 3:
                cancel.set()
        final = event
    assert done([final]).finish is FinishReason.CANCELLED
    assert done([final]).text == "".join(said).strip()
    assert bench.conversations.turns(final.conversation_id)[0].answer.text == done([final]).text


def test_without_a_passage_the_answer_says_so(bench):
    result = done(ask(bench, "zzzz", context=Context((), 0, 0.0))[0])
    assert result.citations == ()
    assert any("No passage was found" in note for note in result.notes)


def test_a_conversation_survives_the_removal_of_its_document(tiny, tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "secret.txt").write_text("The code word is xylophone. " * 20)
    with open_database(tmp_path / "data") as db:
        ingest([folder], db, cancel=threading.Event(), progress=lambda _: None)
        bench = Workbench(tiny, db)
        _, id_ = ask(bench, "What is the code word?")
        DocumentStore(db).remove(DocumentStore(db).list_documents()[0].id)
        bench.cache.forget_everything()
        events, _ = ask(bench, "Which word was it?", id_)
        result = done(events)
        assert result.passages == ()
        recorded = [segment for _, ledger in bench.conversations.ledger(id_) for segment in ledger]
        assert all(not segment.block_id for segment in recorded)
        assert any("read anew" in note for note in result.notes)
        again = done(ask(bench, "And why?", id_)[0])
        assert not any("read anew" in note for note in again.notes), "the new branch is continued"
        assert again.metrics.n_live_tokens >= result.metrics.n_prompt_tokens


def test_what_the_conversation_holds_needs_no_room(tiny_model, library):
    engine = LlamaEngine(tiny_model, Settings(n_ctx=2560))
    try:
        with open_database(library) as db:
            bench, id_ = Workbench(engine, db), None
            for _ in range(4):
                events, id_ = ask(bench, CONVERSATIONS[0][0], id_, n=32)
                assert not any("set aside" in note for note in done(events).notes)
            assert done(events).metrics.n_deduplicated_tokens > 0
    finally:
        engine.close()


def test_a_deleted_conversation_is_not_continued(bench):
    _, id_ = ask(bench, CONVERSATIONS[0][0], n=2)
    bench.conversations.delete(id_)
    with pytest.raises(KnownError, match="deleted"):
        ask(bench, CONVERSATIONS[0][1], id_)


def test_counts_add_up_where_nothing_can_be_cut(bench, monkeypatch):
    monkeypatch.setattr(bench.engine, "_can_cut", False)
    id_ = None
    for text in CONVERSATIONS[0]:
        events, id_ = ask(bench, text, id_)
        metrics = done(events).metrics
        assert metrics.n_live_tokens + metrics.n_prefilled_tokens == metrics.n_prompt_tokens


def test_switching_conversations_costs_a_restore(tiny, library):
    with open_database(library) as db:
        bench = Workbench(tiny, db, ram_budget=1 << 30)
        ids = [ask(bench, conversation[0])[1] for conversation in CONVERSATIONS[:3]]
        for id_, conversation in zip(ids, CONVERSATIONS, strict=False):
            settle(bench, id_, CancelFlag())
            metrics = done(ask(bench, conversation[0], id_)[0]).metrics
            assert metrics.n_prefilled_tokens < 250
            assert metrics.n_live_tokens + metrics.n_ram_tokens > 600
            assert metrics.saved_ms > 0


def test_warm_up_reads_the_instructions_and_what_was_used_last(tiny, library, tmp_path):
    with open_database(library) as db:
        ssd = SsdTier(SnapshotStore(tmp_path, 1 << 30, 1 << 40, pytest.fail))
        first = Workbench(tiny, db, ram_budget=1 << 30, ssd=ssd)
        ask(first, CONVERSATIONS[0][0])
        first.cache.retire()
        ssd.close()
        ssd = SsdTier(SnapshotStore(tmp_path, 1 << 30, 1 << 40, pytest.fail))
        second = Workbench(tiny, db, ram_budget=1 << 30, ssd=ssd)
        warm_up(second, CancelFlag())
        assert second.cache.n_ram_bytes > 1_000_000
        metrics = done(ask(second, CONVERSATIONS[0][0])[0]).metrics
        assert metrics.n_live_tokens > 0
        assert metrics.n_ram_tokens > metrics.n_live_tokens
        assert metrics.n_ssd_tokens == 0
        ssd.close()


def test_another_model_starts_a_new_branch(bench, tmp_path, embedded_model):
    _, id_ = ask(bench, CONVERSATIONS[0][0])
    engine = LlamaEngine(embedded_model, Settings(n_ctx=2048))
    try:
        other = Workbench(engine, bench.db)
        result = done(ask(other, "And then?", id_, n=2, context=Context((), 0, 0.0))[0])
        assert result.metrics.n_prompt_tokens < 400
        assert any("read anew" in note for note in result.notes)
    finally:
        engine.close()


def test_golden_prompt(bench):
    """The whole prompt of a first question and of its follow-up, as text: a change must be meant."""
    context = Searcher(bench.db).search(
        "Who approves a journey?", scope=EVERYTHING, limit=2, token_budget=900
    )
    recorded = []
    prefill = bench.cache.prefill

    def recording(prompt, cancel, *, logits=True, **options):
        recorded.append(prompt)
        yield from prefill(prompt, cancel, logits=logits, **options)

    bench.cache.prefill = recording
    _, id_ = ask(bench, "Who approves a journey?", context=context, n=1)
    ask(bench, "And who pays?", id_, context=context, n=1)

    def text(prompt):
        # Special tokens have no text of their own in token_bytes; name them.
        engine = bench.engine
        names = {
            int(engine.tokenize(name, special=True)[0]): name.encode()
            for name in ("<|im_start|>", "<|im_end|>")
        }
        parts = []
        for segment in prompt.segments:
            body = b"".join(names.get(int(t)) or engine.token_bytes(int(t)) for t in segment.tokens).decode()
            if segment.kind == "answer":
                body = "(what the model said)" + body[body.index("<|im_end|>") :]
            parts.append(f"--- {segment.kind}\n{body}\n")
        return "".join(parts)

    golden = Path(__file__).parent.parent / "golden" / "two_turns.txt"
    if os.environ.get("SLIPSTREAM_WRITE_GOLDEN"):
        golden.write_text(
            "=== first\n" + text(recorded[0]) + "=== second\n" + text(recorded[1]), encoding="utf-8"
        )
    found = "=== first\n" + text(recorded[0]) + "=== second\n" + text(recorded[1])
    assert found == golden.read_text(encoding="utf-8")
