import time

import pytest

from core.errors import DocumentError
from core.ingest.html import read_html


def text_of(html):
    return read_html(html.encode()).text


def test_what_a_reader_sees():
    page = """<!doctype html><html><head><title>The &amp; title</title><style>p {color: red}</style></head>
    <body><nav><a href=x>Menu</a></nav><h1>Head  ing</h1><p>One <b>bold</b>
    word.<br>New line.</p><script>function(){}</script><h2>Sub</h2>
    <ul><li>first</li><li>second <p>with paragraph</p></li></ul>
    <table><tr><th>Name</th><th>Value</th></tr><tr><td>Ada</td><td> 9&nbsp;100 </td><td></td></tr></table>
    <pre>keep   these
      spaces</pre><div hidden>gone</div><div style="display: none">gone</div></body></html>"""
    assert text_of(page) == (
        "# The & title\\n\\n# Head ing\\n\\nOne bold word.\\nNew line.\\n\\n## Sub\\n\\n- first\\n- second\\n\\nwith paragraph"
        "\\n\\nName | Value\\nAda | 9 100\\n\\nkeep   these\\nspaces"
    ).replace("\\n", "\n").replace("9 100", "9 100")


def test_the_title_is_not_said_twice():
    assert text_of("<title>Ducks</title><h1>Ducks and more</h1><p>text") == "# Ducks and more\n\ntext"


def test_menus_and_frames_are_left_out():
    menu = "<ul>" + "".join(f"<li><a href=x>Item {n}</a></li>" for n in range(40)) + "</ul>"
    assert text_of(f"<body>{menu}<p>The text.</p></body>") == "The text."
    assert "Item 7" in text_of(f"<body>{menu}</body>")
    words = "Words of the article. " * 40
    assert text_of(f"<body><div>Sign in</div><main><p>{words}</p></main></body>") == words.strip()
    assert text_of("<body><div>All there is</div><main></main></body>") == "All there is"


def test_a_table_that_lays_out_the_page_is_no_row():
    long = "A paragraph of the page. " * 30
    found = text_of(f"<table><tr><td><p>Menu</p></td><td><p>{long}</p><p>Next.</p></td></tr></table>")
    assert found == f"Menu\n\n{long.strip()}\n\nNext."


def test_nested_tables_keep_their_rows():
    inner = "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td><td>d</td></tr></table>"
    assert text_of(f"<table><tr><td>{inner}</td></tr></table>") == "a | b\nc | d"


def test_deep_nesting_is_no_problem():
    assert text_of("<div>" * 5000 + "deep" + "</div>" * 5000) == "deep"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("<meta charset=utf-8><p>日本語".encode("utf-16"), "日本語"),
        ("<p>naïve".encode(), "naïve"),
        (
            "<meta charset='windows-1251'><p>Однажды в студёную пору".encode("cp1251"),
            "Однажды в студёную пору",
        ),
        (b"<p>half \xe2\x82 a character \xff", "half"),
        (b"<meta charset=no-such-thing><p>caf\xe9", "caf"),
    ],
)
def test_encodings(data, expected):
    assert read_html(data).text.startswith(expected)


def test_data_is_refused():
    with pytest.raises(DocumentError, match="data, not text"):
        read_html(bytes(range(256)) * 10)


def test_a_page_nested_without_end_is_refused_and_a_long_one_is_not():
    with pytest.raises(DocumentError, match="nested"):
        read_html(b"<div>" * 200_000 + b"text")
    assert read_html(b"<div>text</div>" * 20_000).text.count("text") == 20_000
    assert read_html(b"<p>text" * 20_000).text.count("text") == 20_000


@pytest.mark.parametrize(
    "data",
    [
        b"<p>text</p><pre>a" + b" " * 100_000 + b"x</pre>",
        b"\xe9 text " + b"<" * 2_400_000,  # its encoding is guessed, from what stands outside of tags
        b"<p>text" + b"<title " * 60_000,
    ],
)
def test_what_is_repeated_without_end_costs_no_time(data):
    started = time.perf_counter()
    assert "text" in read_html(data).text
    assert time.perf_counter() - started < 3
