from core.store import redaction
from core.store.conversations import ConversationStore
from core.store.documents import DocumentStore, NewBlock, NewDocument
from core.types import Block


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
