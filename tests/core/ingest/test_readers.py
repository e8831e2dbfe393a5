import contextlib
import os
import random
import threading
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import BugError, DocumentError, LimitReached, NoText, ReaderCrashed
from core.ingest import readers
from core.ingest.child import ChildProcess
from core.ingest.extracted import ReadOptions
from core.ingest.readers import SUFFIXES, extract, extract_file, is_supported


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
    assert is_supported(Path("a.PNG"), ocr=True)
    assert not is_supported(Path("a.heic"), ocr=True)
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


N_DAMAGED = int(os.environ.get("SLIPSTREAM_TEST_FUZZ", "40"))
"""Damaged versions of each sample; set it to some thousands to look for faults."""
INTERESTING = st.sampled_from(
    [b"\0", b"\xff" * 4, b"\0" * 64, b"-1", b"99999999999", b"\xed\xa0\x80", b"<", b">", b"]]>", b"&#0;", b"\\",
     b"%s", b"{" * 50, b"<a>" * 50, b"\x7f\xff\xff\xff", b"\xf0\x9f\x92\xa9", b"\n", b'"', b"=?", b"endobj"]
)  # fmt: skip


@st.composite
def damages(draw):
    """A few cuts, changed bytes, insertions, repetitions, moved pieces, and runs of zeros."""
    place = st.floats(0, 1, exclude_max=True)
    steps = st.lists(
        st.tuples(
            st.sampled_from(["cut", "flip", "insert", "repeat", "move", "zeros", "drop"]),
            place,
            place,
            st.binary(min_size=1, max_size=4) | INTERESTING,
        ),
        min_size=1,
        max_size=4,
    )
    return draw(steps)


def damaged(data, steps):
    for kind, one, two, piece in steps:
        a, b = sorted((int(one * len(data)), int(two * len(data))))
        b = min(b, a + 1 + int(two * 200))
        if kind == "cut":
            data = data[: max(a, b)]
        elif kind == "flip":
            data = data[:a] + piece + data[a + len(piece) :]
        elif kind == "insert":
            data = data[:a] + piece + data[a:]
        elif kind == "repeat":
            data = data[:b] + data[a:b] * int(one * 20) + data[b:]
        elif kind == "move":
            data = data[:a] + data[b:] + data[a:b]
        elif kind == "zeros":
            data = data[:a] + bytes(b - a) + data[b:]
        else:
            data = data[:a] + data[b:]
    return data


def damaged_in_an_archive(data, which, steps):
    """One member damaged before it is packed: else its checksum gives every change away."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = sorted(members)[int(which * len(members))]
    members[name] = damaged(members[name], steps)
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return out.getvalue()


TABLE = (
    "<w:tbl><w:tblGrid><w:gridCol/><w:gridCol/></w:tblGrid><w:tr><w:tc><w:tcPr><w:gridSpan w:val='2'/></w:tcPr>"
    "<w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc></w:tr><w:tr><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr>"
    "</w:tbl>"
)
SAMPLES = {
    "a.pdf": lambda make: make["pdf"](
        [[(50, 700 - 12 * n, f"Line {n} of the page") for n in range(20)], None, [(50, 700, "End")]]
    ),
    "a.docx": lambda make: make["docx"](
        "<w:p><w:pPr><w:pStyle w:val='H'/></w:pPr><w:r><w:t>Title</w:t></w:r></w:p><w:p><w:pPr><w:numPr>"
        "<w:numId w:val='1'/></w:numPr></w:pPr><w:r><w:t>item</w:t><w:tab/><w:footnoteReference w:id='2'/></w:r></w:p>"
        + TABLE,
        styles="<w:style w:styleId='H'><w:name w:val='heading 2'/><w:basedOn w:val='H'/></w:style>",
        footnotes="<w:footnote w:id='2'><w:p><w:r><w:t>note</w:t></w:r></w:p></w:footnote>",
    ),
    "a.pptx": lambda make: make["pptx"](
        "<p:sp><p:nvSpPr><p:nvPr><p:ph type='title'/></p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>Title</a:t></a:r>"
        "</a:p></p:txBody></p:sp>",
        "<p:graphicFrame><a:tbl><a:tr><a:tc gridSpan='2'><a:txBody><a:p><a:t>x</a:t></a:p></a:txBody></a:tc></a:tr>"
        "</a:tbl></p:graphicFrame>",
        notes={1: "<p:sp><p:txBody><a:p><a:t>note</a:t></a:p></p:txBody></p:sp>"},
    ),
    "a.xlsx": lambda make: make["xlsx"](
        {
            "one": '<row r="1"><c r="A1"><v>1</v></c><c r="C1" t="str"><v>text</v></c></row>'
            '<row r="9"><c r="B9" s="1"><v>45000</v></c><c r="XFD9" t="b"><v>1</v></c></row>',
            "two": '<row r="2"><c r="A2" t="inlineStr"><is><t>inline</t></is></c></row>',
        }
    ),
    "a.odt": lambda make: make["odt"](
        "<office:text><text:h text:outline-level='2'>T</text:h><text:p>a<text:s text:c='3'/>b<text:tab/></text:p>"
        "<text:list><text:list-item><text:p>i</text:p></text:list-item></text:list><table:table><table:table-row "
        "table:number-rows-repeated='3'><table:table-cell table:number-columns-repeated='2'><text:p>c</text:p>"
        "</table:table-cell></table:table-row></table:table></office:text>"
    ),
    "a.ods": lambda make: make["odt"](
        "<office:spreadsheet><table:table table:name='s'><table:table-row><table:table-cell "
        "table:number-columns-repeated='5'><text:p>7</text:p></table:table-cell></table:table-row></table:table>"
        "</office:spreadsheet>",
        kind="spreadsheet",
    ),
    "a.epub": lambda make: make["epub"](
        ["a.xhtml", "b.xhtml"],
        {"a.xhtml": "<html><body><h1>A</h1><p>text</p></body></html>", "b.xhtml": "<p>more <b>text</b></p>"},
    ),
    "a.rtf": lambda _: (
        rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0\fcharset128 A;}}{\*\x y}\f0 text \'93\'fa \u12354?\par"
        rb"\trowd\cellx1 a\cell b\cell\row {\pict 00ff}\bin3 abc}"
    ),
    "a.html": lambda _: (
        b"<!doctype html><html><head><meta charset=utf-8><title>T</title></head><body><h1>A</h1><ul><li>x<li>y</ul>"
        b"<table><tr><th>a<th colspan=2>b<tr><td rowspan=2>c<td>d</table><p>&amp;&#x41; text<script>x</script></body>"
    ),
    "a.eml": lambda _: (
        b"From: =?utf-8?b?w4Q=?= <a@b.c>\r\nSubject: =?iso-8859-1?q?Gr=FC=DFe?=\r\nDate: Mon, 1 Jan 2024 10:00:00 "
        b"+0100\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\nContent-Type: "
        b"text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\nw4TDlg==\r\n--x\r\nContent-Type:"
        b" text/html\r\n\r\n<p>text</p>\r\n--x\r\nContent-Disposition: attachment; filename*=utf-8''%C3%A4.txt\r\n"
        b"\r\nx\r\n--x--\r\n"
    ),
    "a.csv": lambda _: 'Name;Pay\n"A ""b"" c";9100\nÄ;1,5\n'.encode("cp1252"),
    "a.json": lambda _: b'{"a": [1, -2.5e3, true, null, {"b": "\\u00e4 text"}], "c": "x"}',
    "a.jsonl": lambda _: b'{"a": 1}\n{"a": "text"}\n[1, 2]\n',
    "a.md": lambda _: "# Titel\n\n- ä\n- b\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\ncode\n```\n".encode(),
    "a.txt": lambda _: "Grüße, 日本語 und mehr.\r\n\fNeue Seite\n".encode("utf-16"),
}
ZIPPED = ("a.docx", "a.pptx", "a.xlsx", "a.odt", "a.ods", "a.epub")


@pytest.fixture(scope="module")
def reader():
    with ChildProcess(name="fuzz") as child:
        yield child


@pytest.fixture
def sample(make_pdf, make_docx, make_pptx, make_xlsx, make_odt, make_epub):
    make = {
        "pdf": make_pdf, "docx": make_docx, "pptx": make_pptx, "xlsx": make_xlsx, "odt": make_odt, "epub": make_epub,
    }  # fmt: skip
    return lambda name: SAMPLES[name](make)


def reads_or_refuses(reader, name, data):
    """In a child, so that a crash is a failure of this test and not its end; so is taking too long."""
    try:
        reader.call(
            "core.ingest.readers:extract",
            Path(name),
            data,
            stop=lambda: False,
            seconds=20,
            memory_bytes=1 << 30,
        )
    except (LimitReached, ReaderCrashed):
        raise
    except BugError as error:
        raise AssertionError(error.details) from error
    except DocumentError as error:
        assert error.message


@pytest.mark.parametrize("name", SAMPLES)
def test_damaged_files_give_text_or_a_known_error(name, sample, reader):
    data = sample(name)
    assert reader.call(
        "core.ingest.readers:extract", Path(name), data, stop=lambda: False, seconds=20, memory_bytes=1 << 30
    ).text

    @settings(max_examples=N_DAMAGED, deadline=None)
    @given(damages(), st.floats(0, 1, exclude_max=True), st.booleans())
    def check(steps, which, inside):
        if inside and name in ZIPPED:
            reads_or_refuses(reader, name, damaged_in_an_archive(data, which, steps))
        else:
            reads_or_refuses(reader, name, damaged(data, steps))

    check()


def test_a_file_and_the_bytes_it_was_made_from(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"the zebra")
    found = extract_file(path, ReadOptions())
    assert found.extracted.text == "the zebra"
    assert found.content_hash == xxhash.xxh3_128_hexdigest(b"the zebra")
    assert (found.n_bytes, found.mtime_ns) == (9, path.stat().st_mtime_ns)


def test_more_text_than_can_be_kept_is_refused(monkeypatch):
    monkeypatch.setattr(readers, "MAX_CHARACTERS", 8)
    assert extract(Path("a.txt"), b"12345678").text == "12345678"
    with pytest.raises(DocumentError, match="characters of text"):
        extract(Path("a.txt"), b"123456789")


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")
    for path in (tmp_path / "pipe.txt", tmp_path):
        with pytest.raises(DocumentError, match="not a file"):
            extract_file(path, ReadOptions())
    with pytest.raises(FileNotFoundError):
        extract_file(tmp_path / "nowhere.txt", ReadOptions())


def test_a_file_that_is_written_all_the_time_is_refused(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * 1_000_000)
    done = threading.Event()

    def write():
        number = 0
        while not done.is_set():
            number += 1
            os.utime(path, ns=(number, number))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with pytest.raises(DocumentError, match="being written"):
            for _ in range(200):  # now and then the reader is quicker
                extract_file(path, ReadOptions())
    finally:
        done.set()
        writer.join()
