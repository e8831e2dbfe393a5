from pathlib import Path

import pytest

from core.errors import DocumentError, NeedsRecognition, NoText, PasswordRequired
from core.ingest import kinds
from core.ingest.extracted import ReadOptions
from core.ingest.readers import extract, is_supported


def ole(*streams):
    return kinds.OLE + b"\0" * 600 + b"".join(name.encode("utf-16-le") for name in streams)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.doc", ole("WordDocument"), r"old Word format \(\.doc\).*save it as \.docx"),
        ("a.txt", ole("Workbook"), r"old Excel format"),
        ("a.ppt", ole(), r"old PowerPoint format"),
        ("a.msg", ole("__substg1.0_"), r"\.eml"),
        ("a.bin", ole(), "old Office kind"),
        ("a.docx", b"\x89PNG\r\n\x1a\n", "picture.*OCR"),
        ("a.webp", b"RIFF\0\0\0\0WEBP", "picture"),
        ("a.pdf.gz", b"\x1f\x8b\x08\0", "archive.*Unpack"),
        ("a.tar", b"\0" * 512, "archive"),
        ("a.docx", b"\0\1\2\3" * 100, "is damaged, or is none"),
    ],
)
def test_what_is_not_read_says_what_to_do(name, data, message):
    with pytest.raises(DocumentError, match=message):
        extract(Path(name), data)


def test_encrypted_office_files_ask_for_a_copy():
    with pytest.raises(PasswordRequired, match="password"):
        extract(Path("a.docx"), ole("EncryptedPackage"))


def test_archives(make_zip):
    for members, message in (
        ({"a.txt": "text"}, "archive"),
        ({}, "archive"),
        ({"Index/Document.iwa": ""}, "Pages"),
        ({"[Content_Types].xml": "<a/>"}, "damaged or of a kind"),
    ):
        with pytest.raises(DocumentError, match=message):
            extract(Path("a.zip"), make_zip(members))


def test_a_misnamed_file_is_read_as_what_it_is(make_docx):
    data = make_docx("<w:p><w:r><w:t>text</w:t></w:r></w:p>")
    for name in ("a.pptx", "a.txt", "a", "a.doc", "a.zip"):
        assert extract(Path(name), data).media_type.endswith("wordprocessingml.document")
    assert extract(Path("a.doc"), b"<html><p>text</p></html>").media_type == "text/html"
    assert extract(Path("a.doc"), rb"{\rtf1 text}").text == "text"
    assert extract(Path("a.xls"), b"a\tb\n1\t2\n").text == "a | b\n1 | 2"
    assert extract(Path("a.docx"), b"plain text").media_type == "text/plain"
    assert extract(Path("a.txt"), b"BMW makes cars").text == "BMW makes cars"


@pytest.mark.parametrize("ocr", [False, True])
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.heic", b"\0\0\0\x2cftypheic\0\0\0\0mif1"),
        ("a.jpg", b"\0\0\0\x18ftypmif1"),
        ("a.avif", b"\0\0\0\x20ftypavif"),
        ("a.heif", b"whatever"),
    ],
)
def test_pictures_that_cannot_be_recognized_are_not_offered_to_be(name, data, ocr):
    with pytest.raises(DocumentError, match="Save it as PNG or JPEG") as caught:
        extract(Path(name), data, options=ReadOptions(ocr=ocr))
    assert not isinstance(caught.value, NoText)
    assert "OCR" not in str(caught.value)


def test_pictures_whose_text_is_recognized(tmp_path):
    assert is_supported(Path("a.gif"), ocr=True)
    for name, data in (("a.gif", b"GIF89a"), ("a.heic", b"\xff\xd8\xff")):
        with pytest.raises(NeedsRecognition):
            extract(Path(name), data)
