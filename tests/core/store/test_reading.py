from pathlib import Path

from core.store.reading import ReadingStore


def test_what_was_asked_for_is_kept_until_it_is_done(db):
    store = ReadingStore(db)
    first, second = store.add([Path("/a b"), Path("/文档\udce9.txt")])
    (third,) = store.add([Path("/a b")], ocr=True)
    assert [(one.id, one.path, one.ocr) for one in store.list()] == [
        (first, Path("/a b"), False),
        (second, Path("/文档\udce9.txt"), False),
        (third, Path("/a b"), True),
    ]
    store.remove([first, third])
    assert [one.id for one in store.list()] == [second]
    store.remove([first, second])
    assert store.list() == ()


def test_no_number_is_used_twice(db):
    store = ReadingStore(db)
    (first,) = store.add([Path("/a")])
    store.remove([first])
    assert store.add([Path("/a")]) != (first,)
