import pytest
from PySide6.QtCore import Qt

from app.library_list import FACTS, LibraryModel
from core.types import DocumentWarmth, Warmth


@pytest.fixture
def model(qapp, parts):
    made = LibraryModel()
    made.set_documents([parts.document(1, "a.pdf", collection_id=7), parts.document(2, "b.pdf")], {7: "Flat"})
    return made


def test_a_row_names_its_collection(model):
    assert model.index(0).data(FACTS) == "PDF · 12 pages · 48 blocks · 1.2 MB · in Flat"
    assert model.index(1).data(FACTS) == "PDF · 12 pages · 48 blocks · 1.2 MB"


def test_a_row_says_how_warm_it_is_and_the_tooltip_what_that_means(model, qtbot):
    with qtbot.waitSignal(model.dataChanged):
        model.set_warmth({2: DocumentWarmth(2, Warmth.PARTLY, 1840, 1200, 4.2)})
    row = model.index(1)
    assert row.data(FACTS).endswith("1.2 MB · partly warm · about 4 s left to read")
    assert "1,200 of its 1,840 tokens are kept" in row.data(Qt.ItemDataRole.ToolTipRole)
    assert "partly warm" in row.data(Qt.ItemDataRole.AccessibleTextRole)
    assert model.index(0).data(Qt.ItemDataRole.ToolTipRole) == "/docs/a.pdf"
    model.set_warmth({})
    assert row.data(FACTS).endswith("1.2 MB")
