import pytest
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QAbstractButton, QLabel

from app.kiosk import WARN_S, IdleWatch
from core.config import Settings
from core.types import CollectionInfo, IdleWorkDone, PassageLoaded, PassageText, Scope


@pytest.fixture
def kiosk(open_window):
    return open_window(kiosk=True, settings=Settings(kiosk_idle_s=30))


def answered(kiosk):
    kiosk.ask()
    kiosk.service.answer_all()
    kiosk.settle()


def test_idle_clears_the_conversation(kiosk):
    answered(kiosk)
    idle = kiosk.window.idle
    idle.touch()
    for _ in range(30 - WARN_S):
        idle.tick()
    assert "Starting over in 10 s" in kiosk.window.chat.input.message.text()
    for _ in range(WARN_S):
        idle.tick()
    assert kiosk.window.chat._turns == []
    assert kiosk.window.controller.conversation_id is None
    assert kiosk.service.named("delete_conversation") == [[7]]  # nothing is left for the next visitor


def test_start_over_leaves_no_page_of_the_visitor_before(kiosk):
    answered(kiosk)
    kiosk.service.send(
        PassageLoaded(PassageText(5, "a.txt", "/a.txt", None, "The zebra.", (0, 3), "b", "The"))
    )
    kiosk.settle()
    assert kiosk.window.right.document.text.toPlainText() == "The zebra."
    kiosk.window.header.restart.click()
    kiosk.settle()
    assert kiosk.window.right.document.text.toPlainText() == ""


def test_input_keeps_it(kiosk, qtbot):
    answered(kiosk)
    idle = kiosk.window.idle
    for _ in range(5):
        for _ in range(25):
            idle.tick()
        qtbot.keyClick(kiosk.window.chat.input.edit, Qt.Key.Key_A)
    assert len(kiosk.window.chat._turns) == 1
    assert kiosk.window.chat.input.message.text() == ""


def test_a_running_answer_is_not_idleness(kiosk):
    kiosk.ask()
    kiosk.service.find()
    kiosk.settle()
    for _ in range(100):
        kiosk.window.idle.tick()
    assert len(kiosk.window.chat._turns) == 1


def test_start_over_during_an_answer_stops_and_forgets_it(kiosk):
    kiosk.ask()
    kiosk.service.find()
    kiosk.settle()
    kiosk.window.header.restart.click()
    assert kiosk.service.named("cancel") == [[1]]
    assert kiosk.window.chat._turns == []
    kiosk.service.finish()
    kiosk.settle()
    assert kiosk.service.named("delete_conversation") == [[7]]


def test_it_cannot_be_closed_by_accident(kiosk, qtbot):
    window = kiosk.window
    control, alt = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.AltModifier
    window.activateWindow()
    qtbot.waitActive(window)
    window.close()
    qtbot.keyClick(window.chat.input.edit, Qt.Key.Key_Q, control)
    qtbot.keyClick(window.chat.input.edit, Qt.Key.Key_F4, alt)
    assert window.isVisible()
    qtbot.keyClick(window.chat.input.edit, Qt.Key.Key_Q, control | alt)
    assert not window.isVisible()


def test_one_column_and_large_targets(kiosk):
    answered(kiosk)
    window = kiosk.window
    assert not window.left.isVisible()
    assert not window.right.isVisible()
    assert not window.header.toggle_right.isVisible()
    assert not window.acceptDrops()
    assert window.header.restart.isVisible()
    assert kiosk.view.bar.isVisible()  # the instrument stays
    for button in window.findChildren(QAbstractButton):
        if button.isVisible():
            assert button.height() >= 48, button.accessibleName()
    kiosk.window.header.restart.click()
    kiosk.settle()
    assert all(button.height() >= 48 for button in window.chat.prompts.buttons)


def test_a_source_fills_the_screen_and_leads_back(kiosk):
    answered(kiosk)
    kiosk.view.sources.chips[0].click()
    kiosk.settle()
    assert kiosk.window.right.width() == kiosk.window.width()
    kiosk.window.right.closed.emit()
    assert not kiosk.window.right.isVisible()


def test_moving_a_finger_is_input(qapp):
    watch = IdleWatch(20, lambda: False, lambda: False)
    for _ in range(15):
        watch.tick()
    said = []
    watch.warned.connect(said.append)
    assert not watch.eventFilter(QObject(), QEvent(QEvent.Type.TouchUpdate))
    assert said == [0]
    assert watch._passed_s == 0


def test_what_was_typed_but_not_sent_goes_too(kiosk):
    kiosk.window.chat.input.set_text("my secret")
    for _ in range(30):
        kiosk.window.idle.tick()
    assert kiosk.window.chat.input.text == ""


def test_what_just_appeared_is_measured_at_once(open_window, parts):
    opened = open_window(kiosk=True)
    opened.ask()
    opened.service.find()
    opened.settle()
    opened.window.controller.take(parts.progress(1, 0))  # bar and legend appear
    view = opened.view
    height = view.height()
    opened.settle()
    assert view.fit(view.width()) == height
    assert view.sources.geometry().bottom() < view._progress.geometry().top()


def test_nothing_of_collections_and_idle_work_is_shown_in_public(open_window, parts):
    kiosk = open_window(
        kiosk=True,
        documents=(parts.document(1, collection_id=1),),
        collections=(CollectionInfo(1, "Private letters"),),
    )
    kiosk.service.send(IdleWorkDone(("private.pdf is warm: 90 tokens read.",)))
    kiosk.ask()
    kiosk.service.find()
    kiosk.service.finish(result=parts.answer(plan=("Read whole, since it is kept warm.",)))
    kiosk.settle()
    kiosk.window.controller.inspected.emit()
    assert kiosk.window.right.inspector.isVisible()
    shown = [one.text() for one in kiosk.window.findChildren(QLabel) if one.isVisible()]
    assert not any("private" in words.casefold() or "Read whole" in words for words in shown)
    assert not kiosk.window.library.isVisible()
    assert not kiosk.window.chat.input.scope.isVisible()
    assert kiosk.service.named("submit")[0][0].scope == Scope()
