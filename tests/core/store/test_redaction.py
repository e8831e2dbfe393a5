from dataclasses import replace

from core.store import redaction
from core.store.conversations import ConversationStore
from core.store.documents import DocumentStore, NewBlock, NewDocument
from core.types import Block, Spot, Standing, Stands


def test_only_turns_that_hold_the_block_are_changed(db, an_answer):
    store = ConversationStore(db)
    conversation = store.create("both")
    gone, kept = Block.of("this goes"), Block.of("this stays")
    store.append_turn(conversation, "1", *an_answer(gone))
    untouched = store.append_turn(conversation, "2", *an_answer(kept))
    redaction.forget_blocks(db, [gone.id])
    first, second = store.turns(conversation)
    assert first.answer.passages[0].block == Block(gone.id, "")
    assert second == untouched
    assert [len(segments) for _tokenizer, segments in store.ledger(conversation)] == [0, 3]


def test_what_another_turns_block_shows_goes_from_where_it_is_referred_to(db, an_answer):
    store = ConversationStore(db)
    conversation = store.create("both")
    answer, ledger, tokenizer = an_answer(Block.of("this stays"))
    spot = Spot("the source", 1, "one.txt", None, "shared words")
    standing = Standing(Stands.SHORTENED, Spot(Block.of("this stays").id, 2, "two.txt", None), None, (spot,))
    store.append_turn(conversation, "?", replace(answer, standings=(standing,)), ledger, tokenizer)
    redaction.forget_blocks(db, ["the source"])
    (turn,) = store.turns(conversation)
    assert turn.answer.standings[0].stretches[0].quote == ""
    assert turn.answer.passages[0].block.text == "this stays"


def test_shared_words_of_a_document_removed_meanwhile_are_not_stored(db, an_answer):
    documents = DocumentStore(db)
    block = Block.of("the hidden text")
    info = documents.save(NewDocument("/b.txt", "b.txt", blocks=(NewBlock(block, 0, 15, 4),)))
    answer, ledger, tokenizer = an_answer(Block.of("this stays"))
    spot = Spot(block.id, info.id, "b.txt", None, "hidden text")
    standing = Standing(Stands.SHORTENED, Spot(Block.of("this stays").id, 1, "two.txt", None), None, (spot,))
    documents.remove(info.id)
    store = ConversationStore(db)
    conversation = store.create("late")
    store.append_turn(conversation, "?", replace(answer, standings=(standing,)), ledger, tokenizer)
    assert "hidden" not in db.row("SELECT answer FROM turns")[0]


def test_a_document_removed_while_the_answer_was_made_leaves_nothing(db, an_answer):
    documents = DocumentStore(db)
    block = Block.of("the secret text")
    info = documents.save(NewDocument("/b.txt", "b.txt", blocks=(NewBlock(block, 0, 15, 4),)))
    answer, ledger, tokenizer = an_answer(block, info.id)
    documents.remove(info.id)
    store = ConversationStore(db)
    conversation = store.create("late")
    turn = store.append_turn(conversation, "?", answer, ledger, tokenizer)
    assert turn.answer.passages[0].block.text == ""
    assert store.turns(conversation) == (turn,)
    assert store.ledger(conversation) == ((tokenizer, ()),)


def test_a_document_edited_while_the_answer_was_made_is_still_quoted(db, an_answer):
    documents = DocumentStore(db)
    block = Block.of("the earlier text")
    info = documents.save(NewDocument("/b.txt", "b.txt", blocks=(NewBlock(block, 0, 16, 4),)))
    documents.save(NewDocument("/b.txt", "b.txt"))
    store = ConversationStore(db)
    answer, ledger, tokenizer = an_answer(block, info.id)
    assert store.append_turn(store.create("edited"), "?", answer, ledger, tokenizer).answer == answer
