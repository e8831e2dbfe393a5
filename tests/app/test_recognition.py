import io

import pypdfium2
import pytest

from app import recognition
from core.errors import DocumentError
from core.ingest.readers import extract
from core.types import DocumentStatus


def test_the_reason_why_a_scan_was_not_read_is_understood(parts, tmp_path):
    """As the reader words it: the offer must not go when its words change."""
    made = pypdfium2.PdfDocument.new()
    made.new_page(200, 200)
    buffer = io.BytesIO()
    made.save(buffer)
    made.close()
    with pytest.raises(DocumentError) as caught:
        extract(tmp_path / "scan.pdf", buffer.getvalue())
    scan = parts.document(1, "scan.pdf", DocumentStatus.FAILED, str(caught.value), 1, 0)
    assert recognition.has_unread_pictures(scan)


@pytest.mark.parametrize(
    ("title", "status", "note", "expected"),
    [
        ("photo.JPG", DocumentStatus.FAILED, "This is a picture; Slipstream reads text only.", True),
        ("drawing.gif", DocumentStatus.FAILED, "This is a picture; Slipstream reads text only.", True),
        ("photo.heic", DocumentStatus.FAILED, "This is a picture of a kind that is not read.", False),
        ("photo.jpg", DocumentStatus.FAILED, "No text was recognized in this picture.", False),
        ("photo.jpg", DocumentStatus.READY_WITH_NOTE, "The text was recognized in a picture.", False),
        ("a.pdf", DocumentStatus.READY_WITH_NOTE, "6 of 7 pages hold no text; scanned pages need OCR.", True),
        (
            "a.pdf",
            DocumentStatus.READY_WITH_NOTE,
            "Text of 6 of 7 pages was recognized; 1 holds no text.",
            False,
        ),
        ("a.pdf", DocumentStatus.FAILED, "This PDF is damaged.", False),
        ("a.pdf", DocumentStatus.READY, "", False),
        ("a.txt", DocumentStatus.FAILED, "This file holds no text.", False),
    ],
)
def test_what_is_offered_for_recognition(parts, title, status, note, expected):
    assert recognition.has_unread_pictures(parts.document(1, title, status, note)) is expected


def test_whether_text_can_be_recognized_is_known_without_loading_anything(monkeypatch):
    assert recognition.is_available() in (True, False)
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert not recognition.is_available()
