import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor

from app.instrument import Instrument, Legend, tokens_by_tier, with_references
from app.theme import TIER_COLOURS
from core.types import Tier


@pytest.fixture
def bar(qtbot, theme):
    made = Instrument(theme)
    qtbot.addWidget(made)
    made.resize(486, 24)  # 5 tokens a pixel
    return made


def test_widths_are_shares_of_the_prompt(bar, parts):
    bar.set_chunks(parts.CHUNKS, 0, "")
    widths = [rect.width() for rect in bar.rects()]
    assert sum(widths) == pytest.approx(486)
    total = sum(chunk.n_tokens for chunk in parts.CHUNKS)
    for width, chunk in zip(widths, parts.CHUNKS, strict=True):
        assert width == pytest.approx(486 * chunk.n_tokens / total)


def test_colours_say_where_each_chunk_came_from(bar, parts):
    bar.set_chunks(parts.CHUNKS, 0, "")
    image = bar.grab().toImage()
    ratio = image.width() / bar.width()
    for rect, chunk in zip(bar.rects(), parts.CHUNKS, strict=True):
        colour = image.pixelColor(int(rect.center().x() * ratio), image.height() // 2)
        assert colour == QColor(TIER_COLOURS[chunk.tier])


def test_references_are_a_share_of_their_own(parts):
    chunks = with_references(parts.CHUNKS, 120)
    assert tokens_by_tier(chunks)[Tier.REFERENCED] == 120
    assert with_references(chunks, 120) == chunks  # not twice


def test_pointing_names_the_chunk(bar, parts, qtbot):
    bar.set_chunks(parts.CHUNKS, 0, "")
    bar.show()
    said = []
    bar.pointed.connect(said.append)
    where = bar.rects()[3].center().toPoint()
    qtbot.mouseMove(bar, where)
    qtbot.waitUntil(lambda: bool(said))
    assert said[-1] == "lease-2021.pdf, p. 7 · 512 tokens · from RAM"
    assert bar.chunk_at(-5) == -1


def test_the_arrow_keys_walk_the_chunks(bar, parts, qtbot):
    bar.set_chunks(parts.CHUNKS, 0, "")
    said = []
    bar.pointed.connect(said.append)
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Left, Qt.Key.Key_Left):
        qtbot.keyClick(bar, key)
    assert [words.split(" · ")[0] for words in said] == [
        "instructions",
        "contract-a.pdf, p. 1",
        "instructions",
        "question",
    ]


def test_an_empty_bar_paints(bar):
    bar.set_chunks((), 0, "")
    assert bar.rects() == []
    bar.grab()
    assert bar.chunk_at(QPoint(3, 3).x()) == -1


def test_the_legend_wraps_and_says_it_in_words(qtbot, theme, parts):
    legend = Legend(theme)
    qtbot.addWidget(legend)
    legend.set_tokens(tokens_by_tier(parts.CHUNKS))
    assert legend.heightForWidth(150) > legend.heightForWidth(1200)
    assert "from RAM 512 tokens" in legend.accessibleName()
    legend.resize(150, legend.heightForWidth(150))
    legend.grab()


def test_the_chunk_being_read_fills_paler(bar, parts):
    chunks = parts.progress(1, 6).chunks
    bar.set_chunks(chunks, 0, "", 40.0)  # half of the last one
    image = bar.grab().toImage()
    ratio = image.width() / bar.width()
    last = bar.rects()[-1]
    read, unread = (
        image.pixelColor(int((last.left() + last.width() * part) * ratio), image.height() // 2)
        for part in (0.25, 0.75)
    )
    assert read != QColor(TIER_COLOURS[Tier.PREFILLED])
    assert read.hsvSaturation() > unread.hsvSaturation()
