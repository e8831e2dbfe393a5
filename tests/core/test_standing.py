"""What an answer says of its passages' places is where their text is: real plans, real documents."""

import threading
from dataclasses import replace

import pytest

from core.bench.contracts import contract, edited_clauses
from core.config import Settings
from core.engine.llama import LlamaEngine
from core.engine.protocol import CancelFlag
from core.ingest.library import ingest
from core.pipeline import answer
from core.store.database import open_database
from core.store.documents import DocumentStore
from core.store.passages import PassageStore
from core.types import Context, Question, Scope, Stands
from core.upkeep import Upkeep
from core.workbench import Workbench

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def engine(tiny_model):
    engine = LlamaEngine(tiny_model, Settings(n_ctx=4096))
    yield engine
    engine.close()


@pytest.fixture
def bench(engine, tmp_path):
    """Two versions of a contract, in two files."""
    folder = tmp_path / "files"
    folder.mkdir()
    clauses = contract(6_000, seed=3)
    for name, text in {"one.txt": clauses, "two.txt": edited_clauses(clauses, 0.2, 4)}.items():
        (folder / name).write_text("".join(text), encoding="utf-8")
    with open_database(tmp_path / "data") as db:
        ingest([folder], db, cancel=threading.Event(), progress=lambda _: None)
        bench = Workbench(engine, db, dedup="content")
        bench.rules = replace(bench.rules, whole=False)
        yield bench


def ask(bench, passages, conversation=None, scope=None):
    question = Question("What is due?", conversation, scope or Scope(), 8)
    events = list(answer(bench, 1, question, Context(tuple(passages), 9, 0.0), CancelFlag()))
    return events[-1].turn, events[-1].conversation_id


def told(turn, how):
    return [one for one in turn.answer.standings if one.how is how]


def passages_of(bench, title):
    whole = bench.documents.whole(Scope(), 100_000)
    return [one for one in whole if one.place.title == title]


def test_whole_passages_are_not_told_of(bench):
    turn, _ = ask(bench, passages_of(bench, "one.txt")[:3])
    assert turn.answer.standings == ()


def test_a_passage_given_earlier_names_the_turn_that_gave_it(bench):
    one, two, three = passages_of(bench, "one.txt")[:3]
    first, id_ = ask(bench, [one])
    second, _ = ask(bench, [two], id_)
    third, _ = ask(bench, [two, three, one], id_)
    assert not first.answer.standings
    assert not second.answer.standings
    earlier = {one.spot.block_id: one.turn_id for one in told(third, Stands.EARLIER)}
    assert earlier == {one.block.id: first.id, two.block.id: second.id}
    assert {one.spot.title for one in told(third, Stands.EARLIER)} == {"one.txt"}


def test_what_was_set_aside_is_not_said_to_stand_there(bench):
    one, two = passages_of(bench, "one.txt")[:2]
    _, id_ = ask(bench, [one, two])
    with bench.db.write():  # as when a document that was quoted has gone
        bench.db.run("UPDATE turns SET ledger_segments = '[]', ledger_tokens = x''")
    again, _ = ask(bench, [one], id_)
    assert not again.answer.standings
    after, _ = ask(bench, [one, two], id_)
    assert [one.turn_id for one in told(after, Stands.EARLIER)] == [again.id]


@pytest.mark.parametrize("held", [False, True])
def test_a_shortened_passage_names_the_text_that_it_leaves_out(bench, held):
    old, new = passages_of(bench, "one.txt"), passages_of(bench, "two.txt")
    conversation = None
    if held:  # then the text stands in an earlier turn, outside what is asked now
        _, conversation = ask(bench, old)
    scope = Scope(frozenset({new[0].place.document_id}))
    turn, _ = ask(bench, new if held else [*old, *new], conversation, scope if held else None)
    shortened = told(turn, Stands.SHORTENED)
    assert shortened
    texts = {one.block.id: one.block.text for one in (*old, *new)}
    for one in shortened:
        assert one.stretches
        for spot in one.stretches:
            assert spot.quote in texts[one.spot.block_id]
            assert spot.quote in texts[spot.block_id]
            loaded = PassageStore(bench.db).passage(spot.document_id, spot.block_id, spot.quote)
            assert loaded.text[slice(*loaded.highlight)] == spot.quote, "it opens where it stands"
    if held:
        assert {spot.title for one in shortened for spot in one.stretches} == {"one.txt"}


@pytest.mark.parametrize("title", ["one.txt", "two.txt"])
def test_nothing_of_a_removed_document_is_kept(bench, title):
    _, id_ = ask(bench, passages_of(bench, "one.txt"))
    turn, _ = ask(bench, passages_of(bench, "two.txt"), id_)
    texts = [spot.quote for one in told(turn, Stands.SHORTENED) for spot in one.stretches]
    assert texts
    gone = next(one for one in bench.documents.list_documents() if one.title == title)
    DocumentStore(bench.db).remove(gone.id)
    Upkeep(bench.db, bench, lambda: None).forget_missing()
    kept = bench.conversations.turns(id_)[1].answer
    left = [spot.quote for one in kept.standings for spot in one.stretches if spot.quote]
    assert left == []


def test_riders_are_told_with_their_place(bench):
    first, between, last = passages_of(bench, "one.txt")[:3]
    bench.dedup = "blocks"
    bench.rules = replace(bench.rules, align=False)
    ask(bench, [first, between, last])
    bench.rules = replace(bench.rules, align=True)
    turn, _ = ask(bench, [last, first])
    (rider,) = told(turn, Stands.RIDING)
    assert (rider.spot.block_id, rider.spot.title) == (between.block.id, "one.txt")
