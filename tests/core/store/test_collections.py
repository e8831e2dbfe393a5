from dataclasses import replace

import pytest

from core.errors import KnownError
from core.store.collections import CollectionStore
from core.store.documents import DocumentStore, NewBlock, NewDocument
from core.types import Block, CachePlace, CollectionInfo, Scope


def save(db, name, *texts):
    blocks = tuple(NewBlock(Block.of(text), n, n + 1, 3) for n, text in enumerate(texts))
    return DocumentStore(db).save(NewDocument(f"/a/{name}", name, text="x" * 9, blocks=blocks)).id


def test_life_of_a_collection(db):
    store = CollectionStore(db)
    a, b = save(db, "a.txt", "one"), save(db, "b.txt", "two")
    number = store.create("  Tax   papers ")
    store.assign([a, b], number)
    assert store.list() == (CollectionInfo(number, "Tax papers", 2),)
    store.change(replace(store.find(number), name="Taxes", keep_warm=True))
    assert store.find(number) == CollectionInfo(number, "Taxes", 2, keep_warm=True)
    assert set(DocumentStore(db).kept_warm()) == {a, b}
    store.assign([b], None)
    assert store.document_ids(number) == {a}
    store.delete(number)
    assert store.list() == ()
    assert DocumentStore(db).find_by_path("/a/a.txt").info.collection_id is None


@pytest.mark.parametrize("name", ["", "  \n ", "tax"])
def test_a_name_is_needed_and_unique_whatever_its_case(db, name):
    store = CollectionStore(db)
    store.create("Tax")
    with pytest.raises(KnownError):
        store.create(name)
    other = store.create("Other")
    with pytest.raises(KnownError):
        store.change(replace(store.find(other), name=name))
    store.change(replace(store.find(other), name="OTHER"))


def test_a_block_takes_the_restrictions_of_every_document_that_holds_it(db):
    store = CollectionStore(db)
    a, b = save(db, "a.txt", "shared", "mine"), save(db, "b.txt", "shared")
    apart, private = store.create("apart"), store.create("private")
    store.change(replace(store.find(apart), apart=True))
    store.change(replace(store.find(private), on_disk=False))
    store.assign([a], apart)
    store.assign([b], private)
    shared, mine = Block.of("shared").id, Block.of("mine").id
    assert store.restrictions([a]) == {shared: CachePlace(str(apart), False), mine: CachePlace(str(apart))}
    assert {info.id for info in store.holding([shared])[shared]} == {apart, private}
    assert [info.id for info in store.asked(Scope(frozenset({a, b})))] == [apart, private]
    assert [info.id for info in store.asked(Scope(collection_id=apart))] == [apart]
    assert store.asked(Scope(collection_id=99)) == ()
    assert store.asked(Scope()) == ()


def test_a_collection_as_found_is_told_of_its_blocks_and_restricts_no_cache(db):
    store = CollectionStore(db)
    a, b = save(db, "a.txt", "shared", "mine"), save(db, "b.txt", "shared", "other")
    number = store.create("found")
    store.assign([a], number)
    shared, mine, other = (Block.of(text).id for text in ("shared", "mine", "other"))
    assert store.holding([shared, mine, other]) == {}
    store.change(replace(store.find(number), as_found=True))
    info = CollectionInfo(number, "found", 1, as_found=True)
    assert store.list() == (info,)
    assert store.holding([shared, mine, other]) == {shared: (info,), mine: (info,)}
    assert store.asked(Scope(frozenset({a, b}))) == (info,)
    assert set(store.restrictions([a, b]).values()) == {CachePlace()}
    store.change(replace(info, as_found=False))
    assert store.holding([shared, mine, other]) == {}


def test_a_scope_is_a_collection(db):
    store, documents = CollectionStore(db), DocumentStore(db)
    a, _ = save(db, "a.txt", "one"), save(db, "b.txt", "two")
    number = store.create("c")
    assert documents.whole(Scope(collection_id=number), 100) == (), "an empty collection is not everything"
    store.assign([a], number)
    assert [one.block.text for one in documents.whole(Scope(collection_id=number), 100)] == ["one"]
    assert documents.places_of([Block.of("two").id], Scope(collection_id=number)) == {}
    assert not documents.is_kept_warm(Scope(collection_id=number))
    store.change(replace(store.find(number), keep_warm=True))
    assert documents.is_kept_warm(Scope(collection_id=number))
    assert documents.is_kept_warm(Scope(frozenset({a})))
    assert not documents.is_kept_warm(Scope())


def test_whole_is_in_a_fixed_order_without_repeats_and_bounded(db):
    documents = DocumentStore(db)
    a, b = save(db, "a.txt", "one", "two", "one"), save(db, "b.txt", "two", "three")
    whole = documents.whole(Scope(frozenset({b, a})), 9)
    assert [one.block.text for one in whole] == ["one", "two", "three"]
    assert documents.whole(Scope(frozenset({b, a})), 8) is None
    assert [len(one.places) for one in whole] == [2, 2, 1]


def test_a_file_that_becomes_the_twin_of_another_stays_in_its_collection(db):
    documents, store = DocumentStore(db), CollectionStore(db)
    mine, other = save(db, "mine.txt", "secret"), save(db, "other.txt", "public")
    private = store.create("private")
    store.assign([mine], private)
    store.change(replace(store.find(private), apart=True, on_disk=False))
    documents.keep_warm(mine, wanted=True)
    copied = documents.copy(other, "/a/mine.txt", "mine.txt", 1)
    assert (copied.id, copied.collection_id, copied.keep_warm) == (mine, private, True)
    assert store.restrictions([mine]) == {
        Block.of("public").id: CachePlace(str(private), False),
        Block.of("secret").id: CachePlace(str(private), False),
    }, "what its older version held is as private"
    assert documents.missing_blocks([Block.of("secret").id]), "and is stored no more"
    assert documents.remove(mine) == {Block.of("secret").id}


def test_a_collection_that_is_gone_takes_nothing(db):
    store = CollectionStore(db)
    a = save(db, "a.txt", "one")
    number = store.create("c")
    store.delete(number)
    with pytest.raises(KnownError):
        store.assign([a], number)
