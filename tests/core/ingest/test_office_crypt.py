"""Office files that were encrypted here, with the library that opens them."""

import os
from io import BytesIO
from pathlib import Path

import pytest
from msoffcrypto.method.ecma376_agile import ECMA376Agile

from core.errors import DocumentError, PasswordRequired
from core.ingest.extracted import ReadOptions
from core.ingest.readers import extract


@pytest.fixture
def encrypted(make_docx):
    # Small files are encrypted wrongly by the library (not by Office): it must have 4096 bytes.
    picture = {"word/picture.png": os.urandom(5000)}
    plain = make_docx("<w:p><w:r><w:t>the zebra</w:t></w:r></w:p>", **picture)
    return ECMA376Agile.encrypt("Grün 1", BytesIO(plain))


def test_the_password_opens_it(encrypted):
    found = extract(Path("a.docx"), encrypted, options=ReadOptions(password="Grün 1"))
    assert found.text == "the zebra"


def test_without_it_and_with_another_one(encrypted):
    with pytest.raises(PasswordRequired, match="protected by a password"):
        extract(Path("a.docx"), encrypted)
    with pytest.raises(PasswordRequired, match="does not open"):
        extract(Path("a.docx"), encrypted, options=ReadOptions(password="grün 1"))


def test_damaged_ones_are_refused(encrypted):
    for cut in range(600, len(encrypted), len(encrypted) // 20):
        with pytest.raises(DocumentError):
            extract(Path("a.docx"), encrypted[:cut], options=ReadOptions(password="wrong"))
