import time
from pathlib import Path

import pytest

from core.errors import DocumentError
from core.ingest.readers import extract


def chapter(body, title=""):
    return f"<html><head><title>{title}</title></head><body>{body}</body></html>"


def test_chapters_in_the_order_of_the_spine(make_epub):
    members = {
        "b.xhtml": chapter("<h2>Two</h2><p>second</p>", "The Book"),
        "a.xhtml": chapter("<p>first</p>", "One"),
        "left.xhtml": chapter("<p>not in the spine</p>"),
    }
    data = make_epub(["a.xhtml", "b.xhtml", "a.xhtml"], members)
    assert extract(Path("a.epub"), data).text == "# The Book\n\nAda\n\n# One\n\nfirst\n\n## Two\n\nsecond"


def test_a_package_at_the_top(make_epub):
    data = make_epub(["a.xhtml"], {"a.xhtml": chapter("<p>text")}, package="content.opf")
    assert extract(Path("a.bin"), data).text.endswith("text")


def test_refusals(make_epub, make_zip, survives):
    survives("a.epub", make_epub(["a.xhtml"], {"a.xhtml": chapter("<p>text")}))
    with pytest.raises(DocumentError, match="damaged"):
        extract(Path("a.epub"), make_epub([], {}))
    with pytest.raises(DocumentError, match="damaged"):
        extract(Path("a.epub"), make_zip({"META-INF/container.xml": "<a/>"}))


def test_a_book_that_its_shop_has_locked(make_zip):
    package = (
        '<package><manifest><item id="a" href="a%20b.xhtml" media-type="text/html"/></manifest>'
        '<spine><itemref idref="a"/></spine></package>'
    )
    locked = '<e><EncryptedData><EncryptionMethod Algorithm="http://x#aes128-cbc"/><CipherReference URI="a%20b.xhtml"/></EncryptedData></e>'
    members = {
        "META-INF/container.xml": '<c><rootfile full-path="p.opf"/></c>',
        "META-INF/encryption.xml": locked,
        "p.opf": package,
        "a b.xhtml": chapter("<p>text</p>"),
    }
    with pytest.raises(DocumentError, match="DRM"):
        extract(Path("a.epub"), make_zip(members))
    members["META-INF/encryption.xml"] = locked.replace("aes128-cbc", "RC").replace("a%20b.xhtml", "font.otf")
    assert extract(Path("a.epub"), make_zip(members)).text == "text"


@pytest.mark.parametrize("opening", ["<title>", "<title "])
def test_titles_that_never_end_cost_no_time(make_epub, opening):
    data = make_epub(["a.xhtml"], {"a.xhtml": "<p>the zebra</p>" + opening * 60_000})
    started = time.perf_counter()
    assert "the zebra" in extract(Path("a.epub"), data).text
    assert time.perf_counter() - started < 3
