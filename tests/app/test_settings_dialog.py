from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton, QWidget

from app import settings_dialog
from app.settings_dialog import SettingsDialog
from core.config import Settings
from core.types import ModelInfo


@pytest.fixture
def dialog(qtbot, theme, parts):
    made = SettingsDialog(theme, Settings(answer_tokens=300), parts.MODEL, None)
    qtbot.addWidget(made)
    return made


def test_changes_are_told_at_once(dialog, qtbot):
    with qtbot.waitSignal(dialog.changed) as blocker:
        dialog.theme_box.setCurrentIndex(2)
    assert blocker.args[0] == Settings(theme="dark", answer_tokens=300)


def test_a_value_set_by_hand_is_kept(dialog):
    assert dialog.length_box.currentData() == 300
    assert "settings file" in dialog.length_box.currentText()


def test_choosing_a_model(dialog, qtbot, monkeypatch):
    monkeypatch.setattr(settings_dialog.QFileDialog, "getOpenFileName", lambda *_: ("/m/x.gguf", ""))
    with qtbot.waitSignal(dialog.model_chosen) as blocker:
        dialog._choose()
    assert blocker.args == [Path("/m/x.gguf")]


def test_it_says_what_became_of_a_model(dialog):
    dialog.show()
    dialog.say("x.gguf is loading…")
    assert dialog.note.isVisible()
    dialog.show_model(ModelInfo("Tiny", "/m.gguf", 1, 512, "CPU", "It is often wrong. Take another."))
    assert dialog.note.text() == "It is often wrong. Take another."


def test_forgetting_is_asked_about_first(theme, qtbot, monkeypatch):
    parent = QWidget()
    qtbot.addWidget(parent)
    dialog = SettingsDialog(theme, Settings(), None, parent)
    forgotten = []
    dialog.forget.connect(lambda: forgotten.append(True))
    button = next(b for b in dialog.findChildren(QPushButton) if b.text().startswith("Forget"))
    monkeypatch.setattr("app.settings_dialog.confirm", lambda *_: False)
    button.click()
    assert forgotten == []
    monkeypatch.setattr("app.settings_dialog.confirm", lambda *_: True)
    button.click()
    assert forgotten == [True]


def test_finding_by_meaning_is_switched_and_takes_another_embedder(dialog, qtbot, monkeypatch):
    assert "English" in dialog.embedder_name.toolTip() or "English" in dialog.embedder_name.text()
    with qtbot.waitSignal(dialog.changed) as blocker:
        dialog.meaning_box.setCurrentIndex(2)
    assert blocker.args[0].find_by_meaning == "off"
    monkeypatch.setattr(settings_dialog.QFileDialog, "getOpenFileName", lambda *_: ("/m/e5.gguf", ""))
    with qtbot.waitSignal(dialog.changed) as blocker:
        dialog._choose_embedder()
    assert blocker.args[0].embedder == "/m/e5.gguf"


def test_how_passages_are_read_is_chosen(dialog, qtbot):
    for box, at, name, value in (
        (dialog.first_box, 1, "first_word_s", 2.0),
        (dialog.repeated_box, 1, "dedup", "blocks"),
        (dialog.idle_box, 1, "idle_work", False),
    ):
        with qtbot.waitSignal(dialog.changed) as blocker:
            box.setCurrentIndex(at)
        assert blocker.args[0].reading[name] == value
