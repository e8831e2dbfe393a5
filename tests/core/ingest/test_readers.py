import contextlib
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import DocumentError, NoText
from core.ingest.readers import SUFFIXES, extract, is_supported


@pytest.mark.parametrize(
    ("name", "data", "media_type"),
    [
        ("a.MD", b"# Title", "text/markdown"),
        ("a.txt", b"text", "text/plain"),
        ("README", b"text", "text/plain"),
        ("a.htm", b"<p>text", "text/html"),
        ("a.py", b"x = 1", "text/plain"),
        ("a.csv", b"a,b", "text/csv"),
        ("a.jsonl", b'{"a": 1}', "application/json"),
        ("a.eml", b"Subject: x", "message/rfc822"),
        ("a.rtf", rb"{\rtf1 text}", "application/rtf"),
    ],
)
def test_readers_by_ending(name, data, media_type):
    assert extract(Path(name), data).media_type == media_type


def test_a_pdf_is_one_whatever_it_is_called(make_pdf):
    assert extract(Path("a.txt"), make_pdf([[(50, 700, "Text.")]])).media_type == "application/pdf"


def test_messages_say_what_to_do():
    with pytest.raises(DocumentError, match=r"empty \(0 bytes\)"):
        extract(Path("a.pdf"), b"")
    with pytest.raises(
        DocumentError, match=r"cannot read \.xyz files.*PDF, Word, .*CSV, JSON and plain text"
    ):
        extract(Path("a.xyz"), b"data")
    with pytest.raises(NoText):
        extract(Path("a.txt"), b" \n\t ... \n")


def test_supported_endings():
    assert is_supported(Path("a.PDF"))
    assert is_supported(Path("a.docx"))
    assert not is_supported(Path("a.doc"))
    assert not is_supported(Path("a.png"))
    assert not is_supported(Path("README"))


MAGIC = (b"", b"PK\x03\x04", b"PK\x05\x06", b"%PDF-1.7\n", rb"{\rtf1", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
NAMES = sorted(SUFFIXES | {"", ".doc", ".xls", ".zip", ".png"})


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(MAGIC), st.binary(max_size=400), st.sampled_from(NAMES))
def test_random_bytes_give_text_or_a_known_error(magic, data, suffix):
    with contextlib.suppress(DocumentError):
        extract(Path(f"a{suffix}"), magic + data)


WORDS = (rb"\par", rb"\u-3", rb"\'9", rb"\'93", "\\\\", "{", "}", rb"\cell", rb"\row", rb"\uc99", rb"\bin3", rb"\*",
         rb"\fonttbl", rb"\f1", rb"\fcharset128", rb"\ansicpg65001", b"text", rb"\intbl", rb"\listtext")  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from([word if isinstance(word, bytes) else word.encode() for word in WORDS])))
def test_any_rtf_gives_text_or_a_known_error(words):
    with contextlib.suppress(DocumentError):
        extract(Path("a.rtf"), rb"{\rtf1" + b"".join(words))


@pytest.mark.parametrize("kind", ["docx", "pptx", "xlsx", "odt", "epub"])
def test_one_wrong_byte_gives_text_or_a_known_error(kind, request):
    make = request.getfixturevalue(f"make_{kind}")
    data = {
        "docx": lambda: make("<w:p><w:r><w:t>text</w:t></w:r></w:p>"),
        "pptx": lambda: make("<p:sp><p:txBody><a:p><a:t>text</a:t></a:p></p:txBody></p:sp>"),
        "xlsx": lambda: make({"a": '<row r="1"><c r="A1"><v>1</v></c></row>'}),
        "odt": lambda: make("<office:text><text:p>text</text:p></office:text>"),
        "epub": lambda: make(["a.xhtml"], {"a.xhtml": "<p>text</p>"}),
    }[kind]()
    assert extract(Path("a"), data).text
    chance = random.Random(7)
    for _ in range(400):
        changed = bytearray(data)
        changed[chance.randrange(len(data))] = chance.randrange(256)
        with contextlib.suppress(DocumentError):
            extract(Path("a"), bytes(changed))
