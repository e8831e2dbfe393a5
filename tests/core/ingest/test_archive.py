import zipfile

import pytest

from core.errors import DocumentError
from core.ingest.archive import Archive, parse_xml, resolved


def test_a_bomb_is_refused_before_it_is_unpacked(make_zip):
    bomb = make_zip({"word/document.xml": bytes(100 << 20)})
    assert len(bomb) < 1 << 20
    with pytest.raises(DocumentError, match="would unpack to 100 MB"):
        Archive(bomb)


def test_too_many_members_are_refused(make_zip):
    with pytest.raises(DocumentError, match="20,001 parts"):
        Archive(make_zip({str(number): b"" for number in range(20_001)}, zipfile.ZIP_STORED))


def test_a_size_that_is_a_lie_yields_no_more_than_it_says(make_zip):
    data = bytearray(make_zip({"a": bytes(1 << 20)}))
    at = data.rindex(b"PK\x01\x02")
    data[at + 24 : at + 28] = (10).to_bytes(4, "little")
    with pytest.raises(DocumentError, match="damaged"):
        Archive(bytes(data)).read("a")


def test_what_is_read_again_and_again_counts_each_time(make_zip):
    archive = Archive(make_zip({"a": bytes(31 << 20)}, zipfile.ZIP_STORED))
    with pytest.raises(DocumentError, match="more text than"):
        for _ in range(20):
            archive.read("a")


def test_a_member_that_is_encrypted(make_zip):
    data = bytearray(make_zip({"a": b"text"}))
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.rindex(mark) + flags] |= 1
    with pytest.raises(DocumentError):
        Archive(bytes(data)).read("a")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entities_are_refused(encoding):
    attack = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>'
    for doctype in (True, False):
        with pytest.raises(DocumentError, match="entities"):
            parse_xml(attack.encode(encoding), doctype=doctype)
    with pytest.raises(DocumentError):
        parse_xml(b'<!DOCTYPE a SYSTEM "http://x"><a/>')
    assert parse_xml(b'<!DOCTYPE a SYSTEM "http://x"><a/>', doctype=True).tag == "a"


def test_members_are_found_from_where_they_are_named():
    assert resolved("word/document.xml", "styles.xml") == "word/styles.xml"
    assert resolved("ppt/slides/s1.xml", "../notes.xml") == "ppt/notes.xml"
    assert resolved("ppt/slides/s1.xml", "/a.xml") == "a.xml"
    assert resolved("content.opf", "a.xhtml") == "a.xhtml"
