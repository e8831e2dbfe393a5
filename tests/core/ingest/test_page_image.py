import contextlib
import pickle
import runpy
from pathlib import Path

import pypdfium2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.config import sample_documents
from core.errors import DocumentError, PasswordRequired
from core.ingest.extracted import ReadOptions
from core.ingest.library import blocks_of
from core.ingest.matching import folded_text
from core.ingest.page_image import MAX_PIXELS, check_unchanged, render
from core.ingest.pdf import read_pdf

ROOT = Path(__file__).resolve().parents[3]
SAMPLE = sample_documents() / "travel-policy.pdf"
SIZE = SAMPLE.stat().st_size
WORD = st.text("abcdefghijklmnoprstuvwyz", min_size=1, max_size=9)
PARAGRAPH = st.lists(WORD, min_size=3, max_size=60).map(" ".join)


def parts_of_pages(data):
    """(page, the block's text on it) for every block of a PDF."""
    read = read_pdf(data, lambda: False, ReadOptions())
    ends = [*read.page_starts[1:], len(read.text)]
    for block in blocks_of(read.text):
        for page, (low, high) in enumerate(zip(read.page_starts, ends, strict=True), start=1):
            text = read.text[max(low, block.start) : max(0, min(high, block.end))]
            if text.strip():
                yield page, text


def text_under(data, image):
    """What PDFium finds in the rectangles, extracted again."""
    document = pypdfium2.PdfDocument(data)
    text_page = document[image.page - 1].get_textpage()
    width, height = document[image.page - 1].get_size()
    found = [
        text_page.get_text_bounded(
            one.left * width, height * (1 - one.bottom), one.right * width, height * (1 - one.top)
        )
        for one in image.highlights
    ]
    text_page.close()
    document.close()
    return "".join(found)


def check_every_block(path, data):
    path.write_bytes(data)
    for page, text in parts_of_pages(data):
        image = render(str(path), "", page, 200, text)
        under = folded_text(text_under(data, image))
        for line in text.splitlines():
            assert folded_text(line) in under
        assert all(
            0 <= one.left < one.right <= 1 and 0 <= one.top < one.bottom <= 1 for one in image.highlights
        )


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pages=st.lists(st.lists(PARAGRAPH, min_size=1, max_size=6).map("\n\n".join), min_size=1, max_size=3))
def test_the_rectangles_of_every_block_hold_its_characters(tmp_path, pages):
    made = runpy.run_path(str(ROOT / "packaging" / "sample_pdf.py"))["document"](tuple(pages))
    check_every_block(tmp_path / "made.pdf", made)


def test_the_rectangles_of_the_sample_hold_its_blocks(tmp_path):
    check_every_block(tmp_path / "sample.pdf", SAMPLE.read_bytes())


def two_columns():
    page = [(60, 760, "A title that runs across both of the columns of this page and further to the right")]
    for row in range(20):
        page += [(50, 700 - 14 * row, f"left column line {row:02} is filled with words")]
        page += [(320, 700 - 14 * row, f"right column line {row:02} is filled with words")]
    return page


def test_a_passage_in_one_column_marks_nothing_in_the_other(tmp_path, make_pdf):
    path = tmp_path / "columns.pdf"
    path.write_bytes(make_pdf([two_columns()]))
    read = read_pdf(path.read_bytes(), lambda: False, ReadOptions())
    start = read.text.index("left column line 05")
    end = read.text.index("left column line 09")
    image = render(str(path), "", 1, 600, read.text[start:end])
    assert len(image.highlights) == 4
    assert all(one.right < 0.5 for one in image.highlights)


def test_the_quote_is_marked_in_the_passage_that_it_came_from(tmp_path, make_pdf):
    path = tmp_path / "twice.pdf"
    path.write_bytes(
        make_pdf([[(50, 700, "The same words."), (50, 400, "Second passage."), (50, 380, "The same words.")]])
    )
    image = render(str(path), "", 1, 600, "The same words.", "Second passage.\nThe same words.")
    assert [round(one.top, 1) for one in image.highlights] == [0.5]
    assert len(image.passage) == 2


def test_a_turned_page_is_marked_where_it_is_shown(tmp_path, make_pdf):
    path = tmp_path / "turned.pdf"
    data = make_pdf([[(50, 700, "Text near the top left corner.")]])
    for turn, place in ((0, (0.1, 0.1)), (90, (0.9, 0.1)), (180, (0.9, 0.9)), (270, (0.1, 0.9))):
        path.write_bytes(data.replace(b"/MediaBox", f"/Rotate {turn} /MediaBox".encode()))
        (mark,) = render(str(path), "", 1, 300, "Text near the top left corner.").highlights
        x, y = (mark.left + mark.right) / 2, (mark.top + mark.bottom) / 2
        assert abs(x - place[0]) < 0.15
        assert abs(y - place[1]) < 0.15


def test_the_picture_has_the_width_asked_for_and_can_be_pickled():
    image = render(str(SAMPLE), "", 2, 700, "a night on a gift for the host")
    assert (image.page, image.n_pages, image.width) == (2, 3, 700)
    assert image.height == pytest.approx(700 * 842 / 595, abs=1)
    assert len(image.rgb) >= image.stride * image.height >= 3 * image.width * image.height
    assert len(set(image.rgb)) > 10  # something was drawn
    assert pickle.loads(pickle.dumps(image)) == image


@pytest.mark.parametrize("box", ["0 0 10000 10000", "0 0 100 14400", "0 0 14400 1", "0 0 1e30 1e30"])
def test_no_page_takes_more_than_a_few_million_pixels(tmp_path, make_pdf, box):
    path = tmp_path / "huge.pdf"
    data = make_pdf([[(50, 700, "Text.")]])
    path.write_bytes(data.replace(b"/MediaBox [0 0 600 800]", f"/MediaBox [{box}]".encode()))
    image = render(str(path), "", 1, 10_000, "Text.")
    assert image.width * image.height <= MAX_PIXELS * 1.01
    assert len(image.rgb) <= 4 * MAX_PIXELS


def test_pages_and_files_that_cannot_be_shown(tmp_path, make_pdf):
    path = tmp_path / "some.pdf"
    path.write_bytes(make_pdf([[(50, 700, "Text.")]]))
    for page in (0, 2, 10**9):
        with pytest.raises(DocumentError, match=f"no page {page:,}; it has 1"):
            render(str(path), "", page, 300)
    path.write_bytes(b"%PDF-1.7 and then nothing")
    with pytest.raises(DocumentError, match="cannot be opened"):
        render(str(path), "", 1, 300)
    with pytest.raises(DocumentError, match="no longer where it was"):
        render(str(tmp_path / "gone.pdf"), "", 1, 300)
    with pytest.raises(DocumentError, match="no longer where it was"):
        render(str(tmp_path), "", 1, 300)


def test_a_document_without_pages_is_not_taken_for_a_protected_one(tmp_path, make_pdf):
    path = tmp_path / "empty.pdf"
    path.write_bytes(make_pdf([]))
    with pytest.raises(DocumentError) as caught:
        render(str(path), "", 1, 300)
    assert not isinstance(caught.value, PasswordRequired)


def test_a_file_that_changed_is_noticed(tmp_path):
    import xxhash

    path = tmp_path / "a.pdf"
    path.write_bytes(b"first")
    status = path.stat()
    facts = (status.st_size, status.st_mtime_ns, xxhash.xxh3_128_hexdigest(b"first"))
    check_unchanged(str(path), *facts)
    path.write_bytes(b"first")  # written again, the same
    check_unchanged(str(path), facts[0], 1, facts[2])
    path.write_bytes(b"other")
    with pytest.raises(DocumentError, match="changed after it was read"):
        check_unchanged(str(path), facts[0], 1, facts[2])
    path.unlink()
    with pytest.raises(DocumentError, match="no longer where it was"):
        check_unchanged(str(path), *facts)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(0, SIZE), at=st.integers(0, SIZE - 1), noise=st.binary(max_size=40))
def test_a_damaged_file_gives_a_page_or_says_why_not(tmp_path, cut, at, noise):
    data = bytearray(SAMPLE.read_bytes())
    data[at : at + len(noise)] = noise
    path = tmp_path / "damaged.pdf"
    path.write_bytes(bytes(data[:cut]) if cut % 2 else bytes(data))
    with contextlib.suppress(DocumentError):
        image = render(str(path), "", 1, 200, "Travel within the country", "Travel within the country that")
        assert image.width * image.height <= MAX_PIXELS
