import pytest
from PySide6.QtWidgets import QMessageBox

from app import watched_folders
from app.watched_folders import WatchedFolders, ask_what_becomes_of
from core.types import CollectionInfo, WatchedFolder

HERE = WatchedFolder("/home/ada/Contracts", 1, 48, True)
GONE = WatchedFolder("/media/ada/Scans", None, 3, False, "It is not there now. Its documents stay.")


@pytest.fixture
def folders(qtbot, theme):
    made = WatchedFolders(theme)
    qtbot.addWidget(made)
    qtbot.addWidget(made.toggle)
    made.resize(600, 300)
    made.show()
    made.set_collections([CollectionInfo(1, "Flat")])
    made.set_folders([HERE, GONE])
    return made


def test_each_folder_says_where_it_is_and_how(folders):
    assert [row.path.toolTip() for row in folders.rows] == [HERE.path, GONE.path]
    assert [row.facts.accessibleName() for row in folders.rows] == [
        "48 documents · in Flat",
        "not there now · 3 documents",
    ]
    assert folders.toggle.text() == "2 folders · 1 not there"
    assert folders.rows[1].facts.toolTip() == GONE.note
    folders.grab()
    folders.set_folders([GONE])
    assert folders.toggle.text() == "1 folder · not there"
    folders.set_folders([HERE])
    assert folders.toggle.text() == "1 folder"


def test_nothing_is_shown_where_nothing_is_watched(folders):
    folders.toggle.setChecked(True)
    folders.set_folders([])
    assert (folders.toggle.isVisibleTo(None), folders.toggle.isChecked()) == (False, False)


@pytest.mark.parametrize(
    ("answer", "told"), [(True, [(HERE.path, True)]), (False, [(HERE.path, False)]), (None, [])]
)
def test_an_end_to_watching_asks_what_becomes_of_the_documents(folders, monkeypatch, answer, told):
    heard = []
    folders.unwatched.connect(lambda *values: heard.append(values))
    monkeypatch.setattr(watched_folders, "ask_what_becomes_of", lambda *_: answer)
    folders.rows[0].stop.click()
    assert heard == told


def test_an_empty_folder_is_not_asked_about(folders, monkeypatch):
    heard = []
    folders.unwatched.connect(lambda *values: heard.append(values))
    folders.set_folders([WatchedFolder("/home/ada/Empty", None, 0, True)])
    monkeypatch.setattr(watched_folders, "ask_what_becomes_of", lambda *_: pytest.fail("asked"))
    folders.rows[0].stop.click()
    assert heard == [("/home/ada/Empty", False)]


@pytest.mark.parametrize(
    ("label", "answer"), [("Remove documents", True), ("Keep documents", False), ("Cancel", None)]
)
def test_the_question_has_three_answers_and_keeps_by_default(folders, monkeypatch, label, answer):
    def press(box):
        assert box.defaultButton().text() == "Keep documents"
        next(one for one in box.buttons() if one.text().replace("&", "") == label).click()

    monkeypatch.setattr(QMessageBox, "exec", press)
    assert ask_what_becomes_of(folders, HERE) is answer
