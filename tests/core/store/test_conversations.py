import numpy as np

from core.store.conversations import ConversationStore
from core.types import Block


def test_turns_come_back_as_they_were(db, an_answer):
    store = ConversationStore(db)
    conversation = store.create("first")
    answer, ledger, tokenizer = an_answer(Block.of("some text to quote from"))
    turn = store.append_turn(conversation, "why?", answer, ledger, tokenizer)
    store.append_turn(conversation, "and then?", answer, ledger[:1], tokenizer)
    turns = store.turns(conversation)
    assert turns[0] == turn
    assert turns[0].answer == answer
    assert [found.question for found in turns] == ["why?", "and then?"]
    first, second = store.ledger(conversation)
    assert first[0] == tokenizer
    assert [(segment.kind, segment.block_id) for segment in first[1]] == [
        (segment.kind, segment.block_id) for segment in ledger
    ]
    for found, given in zip(first[1], ledger, strict=True):
        assert found.tokens.dtype == np.int32
        np.testing.assert_array_equal(found.tokens, given.tokens)
    assert len(second[1]) == 1


def test_list_shows_the_one_used_last_first(db, an_answer):
    store = ConversationStore(db)
    one, two = store.create("one"), store.create("two")
    assert [info.id for info in store.list()] == [two, one]
    store.append_turn(one, "?", *an_answer(Block.of("text")))
    assert [(info.id, info.title, info.n_turns) for info in store.list()] == [
        (one, "one", 1),
        (two, "two", 0),
    ]


def test_delete_takes_turns_along_and_leaves_nothing_on_the_disk(data_dir, db, an_answer):
    store = ConversationStore(db)
    conversation = store.create("Quixotically named")
    store.append_turn(conversation, "?", *an_answer(Block.of("text")))
    store.delete(conversation)
    assert store.list() == ()
    assert db.rows("SELECT * FROM turns") == db.rows("SELECT * FROM turn_blocks") == []
    assert b"Quixotically" not in (data_dir / "slipstream.db").read_bytes()
    assert b"Quixotically" not in (data_dir / "slipstream.db-wal").read_bytes()
