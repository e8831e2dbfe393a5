import numpy as np
import pytest
from word_search import texts_with

from core.store.conversations import ConversationStore
from core.store.documents import DocumentStore, NewBlock, NewDocument
from core.store.token_cache import TokenCache
from core.types import Block, DocumentStatus, Scope


def document(path, *texts, **more):
    """A document of these blocks, a blank line between them."""
    whole = "\n\n".join(texts)
    blocks, at = [], 0
    for text in texts:
        blocks.append(NewBlock(Block.of(text), at, at + len(text), 10))
        at += len(text) + 2
    fields = {"title": path.rsplit("/", 1)[-1], "content_hash": f"hash of {whole}", "n_bytes": len(whole)}
    return NewDocument(path=path, text=whole, blocks=tuple(blocks), **{**fields, **more})


@pytest.fixture
def store(db):
    return DocumentStore(db)


def test_save_and_find(store):
    info = store.save(document("/a/one.txt", "first block", "second block", mtime_ns=7))
    assert (info.title, info.n_blocks, info.n_pages, info.status) == ("one.txt", 2, 0, DocumentStatus.READY)
    assert store.list_documents() == (info,)
    record = store.find_by_path("/a/one.txt")
    assert (record.info, record.mtime_ns) == (info, 7)
    assert store.find_by_hash(record.content_hash) == record
    assert store.find_by_path("/a/two.txt") is None
    assert store.find_by_hash("other") is None


def test_a_failed_file_is_listed_with_its_reason(store):
    info = store.save(NewDocument("/a/x.pdf", "x.pdf", status=DocumentStatus.FAILED, note="It is empty."))
    assert (info.status, info.note, info.n_blocks) == (DocumentStatus.FAILED, "It is empty.", 0)
    assert store.list_documents() == (info,)


def test_a_shared_block_is_stored_once_and_has_two_places(db, store):
    one = store.save(document("/a/one.txt", "shared block", "only in one"))
    two = store.save(document("/a/two.txt", "before", "shared block", "shared block"))
    assert db.row("SELECT count(*) FROM blocks") == (3,)
    shared = Block.of("shared block").id
    places = store.places_of([shared, "no such block"], Scope())[shared]
    assert [(place.document_id, place.ordinal) for place in places] == [(one.id, 0), (two.id, 1), (two.id, 2)]
    within = store.places_of([shared], Scope(frozenset({two.id})))[shared]
    assert [place.document_id for place in within] == [two.id, two.id]
    assert store.remove(one.id) == frozenset({Block.of("only in one").id})
    assert [place.document_id for place in store.places_of([shared], Scope())[shared]] == [two.id, two.id]


def test_a_new_version_keeps_its_id_and_drops_what_it_no_longer_holds(db, store):
    old = store.save(document("/a/one.txt", "kept", "dropped"))
    new = store.save(document("/a/one.txt", "kept", "added"))
    assert new.id == old.id
    assert {text for (text,) in db.rows("SELECT text FROM blocks")} == {"kept", "added"}
    assert texts_with(db, ["dropped"]) == []
    assert texts_with(db, ["added"]) == ["added"]


def test_texts_of_blocks_that_are_still_there(store):
    store.save(document("/a/one.txt", "first block", "second block"))
    first, second = Block.of("first block"), Block.of("second block")
    wanted = [second.id, "0" * 16, first.id]
    assert store.texts(wanted) == {first.id: "first block", second.id: "second block"}
    assert store.texts([]) == {}


def test_pages(store):
    texts = ["page one", "also page one", "page two"]
    info = store.save(document("/a/x.pdf", *texts, page_starts=(0, 25)))
    places = store.places_of([Block.of(text).id for text in texts], Scope())
    assert [places[Block.of(text).id][0].page for text in texts] == [1, 1, 2]
    assert info.n_pages == 2


def test_relocate_and_copy(store):
    first = store.save(document("/a/one.txt", "block"))
    moved = store.relocate(first.id, "/b/uno.txt", "uno.txt", 9)
    assert (moved.id, moved.path, moved.title) == (first.id, "/b/uno.txt", "uno.txt")
    copied = store.copy(first.id, "/c/one.txt", "one.txt", 9)
    assert copied.id != first.id
    assert len(store.places_of([Block.of("block").id], Scope())[Block.of("block").id]) == 2


def test_places_and_blocks_beyond_one_statement(store):
    texts = [f"block number {number}" for number in range(1300)]
    info = store.save(document("/a/long.txt", *texts))
    ids = [Block.of(text).id for text in texts]
    assert len(store.places_of(ids, Scope())) == 1300
    assert store.remove(info.id) == frozenset(ids)


def test_a_removed_document_is_gone_from_the_disk(data_dir, db, store, an_answer):
    word = "Xylophagous"
    kept = store.save(document("/a/kept.txt", *(f"block {number} of the other file" for number in range(50))))
    text = f"the {word} beetle eats wood"
    info = store.save(document("/a/secret.txt", text, "more"))
    block = Block.of(text)
    conversations = ConversationStore(db)
    conversation = conversations.create("beetles")
    conversations.append_turn(conversation, "what eats wood?", *an_answer(block, info.id))
    TokenCache(db).put({block.id: np.arange(5, dtype=np.int32)}, "tokenizer")
    assert word.encode() in stored_bytes(data_dir)

    assert block.id in store.remove(info.id)

    for form in (word, word.lower()):
        assert form.encode() not in stored_bytes(data_dir)
    assert kept.id in [found.id for found in store.list_documents()]
    assert texts_with(db, ["xylophagous"]) == []
    assert TokenCache(db).get([block.id], "tokenizer") == {}
    (turn,) = conversations.turns(conversation)
    assert (turn.answer.passages[0].block.text, turn.answer.passages[0].quote) == ("", "")
    assert turn.answer.citations[0].quote == ""
    assert turn.answer.notes == ("The quoted document was removed.",)
    assert conversations.ledger(conversation) == (("tokenizer", ()),)
    assert db.rows("PRAGMA integrity_check") == [("ok",)]
    db.run("INSERT INTO blocks_fts (blocks_fts) VALUES ('integrity-check')")


def stored_bytes(data_dir):
    return b"".join(file.read_bytes() for file in data_dir.iterdir() if not file.name.endswith("-shm"))


def test_removing_an_edited_document_removes_what_was_said_of_its_earlier_versions(db, store, an_answer):
    info = store.save(document("/a/one.txt", "the first secret"))
    block = Block.of("the first secret")
    conversations = ConversationStore(db)
    conversation = conversations.create("said")
    conversations.append_turn(conversation, "?", *an_answer(block, info.id))
    store.save(document("/a/one.txt", "the second text"))
    assert conversations.turns(conversation)[0].answer.passages[0].block == block, "it is still there: edited"
    assert store.remove(info.id) == {block.id, Block.of("the second text").id}
    assert conversations.turns(conversation)[0].answer.passages[0].block.text == ""
    assert conversations.ledger(conversation)[0][1] == ()
    assert b"first secret" not in db.path.read_bytes()


def test_a_file_moved_to_where_a_failed_one_stood(store):
    store.save(NewDocument("/a/x.txt", "x.txt", status=DocumentStatus.FAILED, note="It is empty."))
    moved = store.save(document("/a/y.txt", "text"))
    info = store.relocate(moved.id, "/a/x.txt", "x.txt", 3)
    assert store.list_documents() == (info,)


def test_the_nearest_blocks_of_the_documents_asked(store):
    texts = [f"block {n}" for n in range(9)]
    blocks = [Block.of(text) for text in texts]
    one = store.save(document("/one.txt", *texts[:6])).id
    two = store.save(document("/two.txt", texts[6], texts[2], texts[7])).id
    held = [blocks[2].id]
    assert store.near(held, Scope(frozenset({one})), 4) == [blocks[n] for n in (1, 3, 0, 4)]
    assert store.near(held, Scope(frozenset({two})), 4) == [blocks[6], blocks[7]]
    assert store.near(held, Scope(), 3) == [blocks[n] for n in (1, 3, 6)]
    assert store.near([blocks[8].id], Scope(), 3) == store.near([], Scope(), 3) == []
