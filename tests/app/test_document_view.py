import pytest

from app.document_view import DocumentView
from core.config import sample_documents
from core.ingest.page_image import render
from core.types import PageLoaded, PassageText, TextLoaded

SAMPLE = sample_documents() / "travel-policy.pdf"
QUOTE = "Under €15 no receipt is needed"


@pytest.fixture
def view(qtbot, theme):
    made = DocumentView(theme)
    qtbot.addWidget(made)
    made.resize(640, 600)
    made.show()
    made.asked = []
    made.page_wanted.connect(lambda *wish: made.asked.append(wish))
    return made


def pdf(number=1, page=3, **more):
    values = {"block_id": "b", "quote": QUOTE, "media_type": "application/pdf", "n_pages": 3, **more}
    return PassageText(number, SAMPLE.name, str(SAMPLE), page, QUOTE, (0, len(QUOTE)), **values)


def text(title="notes.md", **more):
    return PassageText(2, title, f"/{title}", None, "Some text.", (0, 4), media_type="text/markdown", **more)


def draw(view, qtbot):
    qtbot.waitUntil(lambda: bool(view.asked))
    number, page, width, block, quote = view.asked.pop()
    view.take(PageLoaded(number, page, render(str(SAMPLE), "", page, width, quote), "", "", block, quote))


def test_a_citation_of_a_pdf_opens_its_page(view, qtbot):
    view.show_passage(pdf())
    qtbot.waitUntil(lambda: bool(view.asked))
    assert view.asked[0][:2] == (1, 3)
    assert view.asked[0][3:] == ("b", QUOTE)
    draw(view, qtbot)
    assert view.pages.isVisible()
    assert view.pages.paper.page.highlights
    assert view.number.text() == "Page 3 of 3"
    assert (view.previous.isEnabled(), view.next.isEnabled()) == (True, False)
    view.previous.click()
    draw(view, qtbot)
    assert view.pages.paper.page.page == 2
    assert view.number.text() == "Page 2 of 3"


def test_text_and_page_are_one_click_apart(view, qtbot):
    view.show_passage(pdf())
    draw(view, qtbot)
    assert view.mode.text() == "Text"
    view.mode.click()
    assert view.text.isVisible()
    assert view.text.toPlainText() == QUOTE
    assert view.place.text() == "Page 3 of 3"
    view.show_passage(pdf(page=1))  # the choice stays
    assert view.text.isVisible()
    view.mode.click()
    draw(view, qtbot)
    assert view.pages.isVisible()
    assert view.pages.paper.page.page == 1


def test_other_formats_are_read_as_text_under_their_heading(view, qtbot):
    view.show_passage(text(heading="Sheet: Staff"))
    qtbot.wait(5)
    assert view.text.isVisible()
    assert not view.mode.isVisible()
    assert view.place.text() == "Sheet: Staff"
    assert view.asked == []


def test_slides_are_called_slides(view):
    view.show_passage(PassageText(3, "a.pptx", "/a.pptx", 2, "x", (0, 1), media_type="ms/pptx", n_pages=9))
    assert view.place.text() == "Slide 2 of 9"


def test_where_the_page_cannot_be_drawn_its_text_is_shown_with_the_reason(view, qtbot):
    view.show_passage(pdf())
    view.take(PageLoaded(1, 3, None, "The file is no longer where it was.", "This is its text.", "b", QUOTE))
    assert view.text.isVisible()
    assert view.problem.text() == "The file is no longer where it was. This is its text."
    assert view.problem.isVisible()
    assert view.mode.isVisible()  # it can be tried again
    view.mode.click()
    assert not view.problem.isVisible()
    draw(view, qtbot)
    assert view.pages.isVisible()


def test_what_arrives_for_another_document_is_left_out(view, qtbot):
    view.show_passage(pdf())
    draw(view, qtbot)
    shown = view.pages.paper.page
    view.take(PageLoaded(99, 3, None, "gone"))
    view.take(PageLoaded(1, 2, None, "an old page cannot be drawn", "", "b", QUOTE))
    view.take(PageLoaded(1, 3, None, "of another passage", "", "c", "another"))
    view.take(TextLoaded(99, 1, "more", (0,)))
    assert view.pages.paper.page is shown
    assert not view.problem.isVisible()


def test_pages_and_sheets_get_room_unless_the_user_wants_it_otherwise(view, qtbot):
    told = []
    view.room_wanted.connect(lambda: told.append(view.wants_room))
    view.show_passage(pdf())
    view.show_passage(text())
    view.show_passage(text("a.xlsx"))
    assert told == [True, False, True]
    view.wider.click()
    view.show_passage(pdf())
    assert told[-2:] == [False, False]
    assert view.wider.toolTip() == "Make this pane wider"


def test_a_drawing_for_an_older_passage_does_not_use_up_the_way_to_the_mark(view, qtbot):
    last = "Reports that come after 60 days are paid only with the signature of the head of finance"
    view.resize(640, 300)
    view.show_passage(pdf())
    qtbot.waitUntil(lambda: bool(view.asked))
    number, page, width, block, quote = view.asked.pop()
    view.show_passage(pdf(quote=last))
    view.take(PageLoaded(number, page, render(str(SAMPLE), "", page, width, quote), "", "", block, quote))
    assert view.pages.paper.page is None
    draw(view, qtbot)
    first = view.pages.paper.place(view.pages.paper.page.highlights[0])
    assert 0 < first.top() - view.pages.verticalScrollBar().value() < view.pages.viewport().height() / 2


def test_what_is_forgotten_is_nowhere(view, qtbot):
    view.show_passage(pdf())
    draw(view, qtbot)
    view.mode.click()
    assert view.text.toPlainText() == QUOTE
    view.forget()
    assert (view.document_id, view.text.toPlainText(), view.pages.paper.page) == (None, "", None)
    assert view.title.text() == view.place.text() == view.title.toolTip() == ""
    view.take(TextLoaded(1, 0, "late", (0,)))
    view.take(PageLoaded(1, 3, render(str(SAMPLE), "", 3, 300), "", "", "b", QUOTE))
    assert (view.text.toPlainText(), view.pages.paper.page) == ("", None)
    view.show_passage(text())
    assert view.text.toPlainText() == "Some text."
