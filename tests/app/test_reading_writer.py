import pytest
from PySide6.QtGui import QColor, QTextCursor, QTextDocument, QTextTable
from PySide6.QtWidgets import QTextBrowser

from app.reading_text import Manner
from app.reading_writer import write


@pytest.fixture
def written(theme):
    def make(text, manner=Manner.MARKED, mark=None, room_px=600):
        document = QTextDocument()
        return document, write(document, theme, text, manner, mark, room_px)

    return make


def tables(document):
    return [frame for frame in document.rootFrame().childFrames() if isinstance(frame, QTextTable)]


def marked(document, theme):
    found, block = [], document.begin()
    while block.isValid():
        iterator = block.begin()
        while not iterator.atEnd():
            if iterator.fragment().charFormat().background().color() == QColor(theme.tokens.mark):
                found.append(iterator.fragment().text())
            iterator += 1
        block = block.next()
    return found


def test_a_heading_is_larger_and_its_signs_are_gone(written, theme):
    document, _ = written("# Title\n\nText under it.")
    block = document.begin()
    assert block.text() == "Title"
    assert block.begin().fragment().charFormat().font().pixelSize() > theme.px(14)
    assert block.next().text() == "Text under it."


def test_rows_become_a_table_with_the_mark_in_its_cells(written, theme):
    text = "Before.\n\nName | | Pay\nAda | | 9100\nBob | | 8700\n\nAfter."
    start = text.index("9100")
    document, _ = written(text, mark=(start, text.index("Bob") + 3))
    (table,) = tables(document)
    assert (table.rows(), table.columns()) == (3, 2)  # the empty column is left out
    assert table.cellAt(1, 1).firstCursorPosition().block().text() == "9100"
    assert marked(document, theme) == ["9100", "Bob"]
    assert document.toPlainText().startswith("Before.")
    assert document.toPlainText().endswith("After.")


def test_a_large_table_becomes_lines_with_tab_stops(written, theme):
    text = "\n".join(f"row {number} | {number * 7} | end" for number in range(300))
    document, _ = written(text, Manner.TABLE, mark=(0, 5))
    assert tables(document) == []
    block = document.findBlockByNumber(299)
    assert block.text() == "row 299\t2093\tend"
    stops = [tab.position for tab in block.blockFormat().tabPositions()]
    assert len(stops) == 2
    assert stops == sorted(stops)
    assert marked(document, theme) == ["row 0"]


def test_a_table_wider_than_the_view_keeps_its_words_whole(written):
    text = "\n".join(" | ".join(f"incomprehensibilities {n}" for n in range(8)) for _ in range(3))
    document, _ = written(text, room_px=300)
    widths = [one.rawValue() for one in tables(document)[0].format().columnWidthConstraints()]
    assert min(widths) > 100
    assert sum(widths) > 300


def test_right_to_left_paragraphs_stand_at_the_right(qtbot, theme):
    view = QTextBrowser()
    qtbot.addWidget(view)
    view.resize(400, 300)
    view.show()
    write(view.document(), theme, "عقد الإيجار\n\nIn English.", Manner.PROSE, None, 400)
    cursor = QTextCursor(view.document())
    assert view.cursorRect(cursor).left() > 300
    cursor.movePosition(QTextCursor.MoveOperation.NextBlock)
    assert view.cursorRect(cursor).left() < 20


def test_stretches_lead_from_the_text_to_its_place(written):
    text = "# 😀 Title\n\n- item 😀 x\n\na | b\nc | d\n\nend"
    document, stretches = written(text)
    assert [one.start for one in stretches] == sorted(one.start for one in stretches)
    for one in stretches:
        at = document.findBlock(one.position)
        assert text[one.start : one.end] in at.text()


def test_markup_in_a_document_stays_text(written):
    evil = "<img src='http://127.0.0.1:9/x'><script>x</script>"
    document, _ = written(evil, Manner.MARKDOWN)
    assert document.toPlainText() == evil
