from pathlib import Path

import pytest

from core.errors import DocumentError, NoText
from core.ingest.readers import extract, is_supported


@pytest.mark.parametrize(
    ("name", "data", "media_type"),
    [
        ("a.MD", b"# Title", "text/markdown"),
        ("a.txt", b"text", "text/plain"),
        ("README", b"text", "text/plain"),
        ("a.htm", b"<p>text", "text/html"),
    ],
)
def test_readers_by_ending(name, data, media_type):
    assert extract(Path(name), data).media_type == media_type


def test_a_pdf_is_one_whatever_it_is_called(make_pdf):
    assert extract(Path("a.txt"), make_pdf([[(50, 700, "Text.")]])).media_type == "application/pdf"


def test_messages_say_what_to_do():
    with pytest.raises(DocumentError, match=r"empty \(0 bytes\)"):
        extract(Path("a.pdf"), b"")
    with pytest.raises(DocumentError, match=r"cannot read \.xyz files.*PDF, Markdown, plain text and HTML"):
        extract(Path("a.xyz"), b"data")
    with pytest.raises(NoText):
        extract(Path("a.txt"), b" \n\t ... \n")


def test_supported_endings():
    assert is_supported(Path("a.PDF"))
    assert not is_supported(Path("a.docx"))
    assert not is_supported(Path("README"))
