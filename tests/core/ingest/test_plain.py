import pytest

from core.errors import DocumentError
from core.ingest.plain import decode, read_text

RUSSIAN = "Однажды, в студеную зимнюю пору, я из лесу вышел; был сильный мороз.\n" * 3


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1251", "koi8-r"])
def test_encodings(encoding):
    assert decode(RUSSIAN.encode(encoding))[0] == RUSSIAN


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_without_a_mark(encoding):
    assert decode("Plain text, nothing else.".encode(encoding)) == ("Plain text, nothing else.", "")


def test_a_guess_is_said():
    text, note = decode("## können äöüß\n".encode("latin-1"))
    assert text == "## können äöüß\n"
    assert "guessed (cp1252)" in note
    assert decode("日本語".encode())[1] == ""


def test_a_file_cut_inside_a_character_is_still_utf8():
    assert decode("日本語".encode()[:-1]) == ("日本", "")


def test_line_ends_and_what_cannot_be_stored():
    found = read_text(b"one\r\ntwo\rthree\x0cfour e\xcc\x81\x07", "text/plain")
    assert found.text == "one\ntwo\nthree\n\nfour é"
    assert found.media_type == "text/plain"


def test_data_is_refused():
    with pytest.raises(DocumentError, match="data, not text"):
        decode(b"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00" * 50)
