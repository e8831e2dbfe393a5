import pytest

from app import recognition
from app.document_detail import DocumentDetail
from core.types import DocumentStatus

NO_TEXT = "This PDF has 7 pages and no text; it holds images, probably scans."


@pytest.fixture
def detail(qtbot, theme):
    made = DocumentDetail(theme)
    qtbot.addWidget(made)
    made.resize(600, 60)
    made.show()
    return made


@pytest.fixture
def scans(parts):
    return [parts.document(n, f"scan{n}.pdf", DocumentStatus.FAILED, NO_TEXT, 7, 0) for n in (1, 2)]


@pytest.fixture(params=[True, False])
def available(request, monkeypatch):
    monkeypatch.setattr("core.ingest.ocr.is_available", lambda: request.param)
    return request.param


def told(signal):
    heard = []
    signal.connect(heard.append)
    return heard


def test_nothing_to_say_of_documents_that_are_read(detail, parts):
    assert not detail.show_selected([])
    assert not detail.show_selected([parts.document()])
    assert not detail.action.isVisible()


def test_a_locked_document_offers_its_password(detail, parts):
    unlock = told(detail.unlock_wanted)
    locked = parts.document(2, "b.pdf", DocumentStatus.NEEDS_PASSWORD, "It is protected by a password.")
    assert detail.show_selected([locked])
    assert detail.action.text() == "Enter password…"
    detail.action.click()
    assert unlock == [locked]
    detail.show_selected([locked, parts.document()])  # one password opens one document
    detail.act()
    assert len(unlock) == 1


def test_a_scan_offers_recognition_or_says_how_to_get_it(detail, scans, available):
    wanted = told(detail.recognition_wanted)
    assert detail.show_selected(scans[:1])
    assert detail.action.isVisible() is available
    assert ("extra “ocr”" in detail.text()) is not available
    assert detail.text().startswith(NO_TEXT)
    detail.act()
    assert wanted == ([[1]] if available else [])


def test_several_scans_are_recognized_together(detail, scans, parts, monkeypatch):
    monkeypatch.setattr(recognition, "is_available", lambda: True)
    wanted = told(detail.recognition_wanted)
    assert detail.show_selected([*scans, parts.document(3, "c.pdf")])
    assert detail.action.text() == "Recognize text of 2 documents"
    detail.action.click()
    assert wanted == [[1, 2]]
