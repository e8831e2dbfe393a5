import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.store.database import open_database
from core.store.documents import DocumentStore, NewBlock, NewDocument
from core.store.passages import PassageStore
from core.types import Block


def document(path, *texts, gap="\n\n", **more):
    """A document of these blocks, with white space between them."""
    blocks, at = [], 0
    for text in texts:
        blocks.append(NewBlock(Block.of(text), at, at + len(text), 10))
        at += len(text) + len(gap)
    return NewDocument(path, path.rsplit("/", 1)[-1], text=gap.join(texts), blocks=tuple(blocks), **more)


@pytest.fixture
def save(db):
    return DocumentStore(db).save


@pytest.fixture
def reading(db):
    return PassageStore(db)


def test_a_passage_with_its_neighbours_and_the_quote(save, reading):
    texts = ("zero", "one", "two and a half", "three", "four")
    info = save(document("/a/x.pdf", *texts, page_starts=(0, 6), media_type="application/pdf"))
    passage = reading.passage(info.id, Block.of("two and a half").id, "a half")
    assert passage.text.strip() == "one\n\ntwo and a half\n\nthree"
    assert passage.text[slice(*passage.highlight)] == "a half"
    assert (passage.page, passage.title, passage.n_pages, passage.n_blocks) == (2, "x.pdf", 2, 5)
    assert (passage.first, len(passage.cuts), passage.media_type) == (1, 3, "application/pdf")
    whole = reading.passage(info.id, Block.of("zero").id, "not in it", around=0)
    assert whole.text[slice(*whole.highlight)] == "zero"
    assert reading.passage(info.id, "no such block", "x") is None
    assert reading.passage(99, Block.of("zero").id, "x") is None


def test_the_page_is_the_one_on_which_the_quote_begins(save, reading):
    info = save(document("/a/x.pdf", "It runs over the page.", page_starts=(0, 8)))
    block = Block.of("It runs over the page.").id
    assert reading.passage(info.id, block, "It runs").page == 1
    assert reading.passage(info.id, block, "the page").page == 2


def test_what_is_marked_on_each_page_of_a_passage_that_runs_over_two(save, reading):
    text = "It runs over the page."
    info = save(document("/a/x.pdf", "Before.", text, page_starts=(0, 9 + 8), content_hash="abc", n_bytes=7))
    block = Block.of(text).id
    first = reading.page_part(info.id, 1, block, "runs over the")
    second = reading.page_part(info.id, 2, block, "runs over the")
    assert (first.wanted, first.around) == ("runs ", "It runs ")
    assert (second.wanted, second.around) == ("over the", "over the page.")
    assert (first.path, first.content_hash, first.n_bytes) == ("/a/x.pdf", "abc", 7)
    assert reading.page_part(info.id, 2, block, "It runs").wanted == ""
    assert reading.page_part(info.id, 1, "gone", "It runs").wanted == ""
    assert reading.page_part(99, 1, block, "x") is None


def test_the_heading_above_a_passage(save, reading):
    texts = ("# Sheet: Staff\n\nAda | 9100", "Bob | 8700", "# Sheet: Rooms\n\n214 | Finance")
    info = save(document("/a/x.xlsx", *texts, media_type="application/vnd.ms-excel"))
    assert reading.passage(info.id, Block.of(texts[1]).id, "").heading == "Sheet: Staff"
    assert reading.passage(info.id, Block.of(texts[2]).id, "Finance").heading == "Sheet: Rooms"
    code = save(document("/a/x.py", "# a comment", "x = 1", media_type="text/plain"))
    assert reading.passage(code.id, Block.of("x = 1").id, "").heading == ""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(
    texts=st.lists(st.text("abc \n", min_size=1).map(str.strip).filter(bool), min_size=1, max_size=9),
    gap=st.sampled_from(["\n\n", "\n", " ", ""]),
    n=st.integers(1, 4),
)
def test_the_parts_of_a_document_are_its_text(save, reading, texts, gap, n):
    made = document("/a/x.txt", *texts, gap=gap)
    info = save(made)
    parts = [reading.part(info.id, first, n) for first in range(0, len(texts), n)]
    assert "".join(part.text for part in parts) == made.text
    assert sum(len(part.cuts) for part in parts) == len(texts)
    for part in parts:
        ends = [*part.cuts[1:], len(part.text)]
        pieces = [part.text[cut:end].strip() for cut, end in zip(part.cuts, ends, strict=True)]
        assert pieces == texts[part.first : part.first + n]


def test_past_the_end_there_is_nothing(save, reading):
    info = save(document("/a/x.txt", "one"))
    assert reading.part(info.id, 1, 8).cuts == ()
    assert reading.part(99, 0, 8).text == ""


def test_a_document_that_is_removed_in_the_middle_is_there_whole_or_not_at_all(
    db, save, reading, monkeypatch
):
    info = save(document("/a.txt", "zero", "one", "two", page_starts=(0, 5)))
    standing = reading._standing

    def removed_after(*args):
        found = standing(*args)
        with open_database(db.path.parent) as other:
            DocumentStore(other).remove(info.id)
        return found

    monkeypatch.setattr(reading, "_standing", removed_after)
    passage = reading.passage(info.id, Block.of("one").id, "one")
    assert (passage.text, passage.page) == ("zero\n\none\n\ntwo", 2)
    assert reading.passage(info.id, Block.of("one").id, "one") is None
    info = save(document("/a.txt", "zero", "one", "two", page_starts=(0, 5)))
    assert reading.page_part(info.id, 2, Block.of("one").id, "one").wanted == "one"
    assert reading.page_part(info.id, 2, Block.of("one").id, "one") is None
