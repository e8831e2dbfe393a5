import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QAbstractButton, QAbstractScrollArea, QComboBox, QLineEdit, QTabBar

from app import main_window
from app.bridge import ServiceBridge
from app.chat_controller import Engine
from app.chat_page import EXAMPLES, SAMPLE_EXAMPLES
from app.right_pane import SOURCES
from core.config import Settings, load_settings, sample_documents
from core.errors import StoreError
from core.ingest.page_image import render
from core.types import (
    EngineFailed,
    EngineReady,
    IdleWorkDone,
    IngestProgress,
    ModelInfo,
    Notice,
    PageLoaded,
    PassageLoaded,
    PassageText,
)

HEAVY = ("numba", "llama_cpp", "sqlite_utils", "core.service", "pypdfium2")


def test_import_budget():
    """The window comes first: nothing heavy is imported with it."""
    code = f"import sys, app.main_window; print([n for n in {HEAVY!r} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def drop(window, paths):
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    nothing = Qt.KeyboardModifier.NoModifier
    enter = QDragEnterEvent(QPoint(9, 9), Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, nothing)
    window.dragEnterEvent(enter)
    assert enter.isAccepted() == window._bridge.ready
    shown = window.shell._drop.isVisible()
    left = Qt.MouseButton.LeftButton
    window.dropEvent(QDropEvent(QPointF(9, 9), Qt.DropAction.CopyAction, mime, left, nothing))
    return shown


def test_files_and_folders_can_be_dropped(opened):
    paths = [Path("/docs/a.pdf"), Path("/docs/folder")]
    assert drop(opened.window, paths)
    assert opened.service.named("add_paths") == [[paths]]
    assert opened.window.pages.currentWidget() is opened.window.library
    assert not opened.window.shell._drop.isVisible()


def test_web_addresses_are_not_taken(opened):
    mime = QMimeData()
    mime.setUrls([QUrl("https://example.com/a.pdf")])
    nothing = Qt.KeyboardModifier.NoModifier
    event = QDropEvent(QPointF(9, 9), Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, nothing)
    opened.window.dropEvent(event)
    assert opened.service.named("add_paths") == []


def test_the_caution_of_a_model_stays(opened, parts):
    model = ModelInfo("Tiny", "/m.gguf", 1, 512, "CPU", "It is often wrong.")
    opened.service.send(EngineReady(model))
    opened.settle()
    assert opened.window.chat.model_line.words.text() == "Tiny on CPU. It is often wrong."
    assert opened.window.chat.model_line.button.isVisible()


def test_a_failed_engine_offers_another_model(opened, monkeypatch):
    monkeypatch.setattr(main_window, "choose_model", lambda _: Path("/models/good.gguf"))
    opened.service.send(EngineFailed("The model is damaged.", "Choose another one.", "tensor 3"))
    opened.settle()
    problem = opened.window._problems.itemAt(0).widget()
    assert "damaged" in problem.accessibleName()
    buttons = {button.text(): button for button in problem.findChildren(QAbstractButton)}
    assert set(buttons) == {"Choose a model…", "Dismiss", "Details"}
    assert opened.window.controller.engine is Engine.READY  # the old one stays in use
    buttons["Choose a model…"].click()
    assert opened.service.named("use_model") == [[Path("/models/good.gguf")]]
    opened.service.send(EngineReady(ModelInfo("Good", "/models/good.gguf", 1, 512, "CPU")))
    opened.settle()
    assert opened.window._problems.count() == 0
    assert load_settings(opened.options.data_dir).model == "/models/good.gguf"


def test_without_any_model_sources_are_still_asked_for(open_window):
    opened = open_window(ready=False)
    opened.service.send(EngineFailed("No model.", "Choose one.", ""))
    opened.settle()
    opened.ask()
    assert len(opened.service.named("submit")) == 1


def test_a_service_that_could_not_be_made_is_said(opened, monkeypatch):
    monkeypatch.setattr(ServiceBridge, "ready", False)
    opened.bridge.refused.emit(StoreError("The database is newer than this program.", hint="Update it."))
    problem = opened.window._problems.itemAt(0).widget()
    assert "newer" in problem.message.text()
    opened.ask()
    assert opened.service.named("submit") == []
    assert opened.window.chat.input.text  # the question is not lost


def test_a_notice_is_shown_until_dismissed(opened):
    opened.service.send(Notice("The passage is gone.", "Ask again.", "id 7"))
    opened.settle()
    problem = opened.window._problems.itemAt(0).widget()
    details = next(b for b in problem.findChildren(QAbstractButton) if b.text() == "Details")
    assert not problem._details.isVisible()
    details.click()
    assert problem._details.isVisible()
    next(b for b in problem.findChildren(QAbstractButton) if b.text() == "Dismiss").click()
    assert not problem.isVisible()


def test_settings_take_effect_and_are_kept(opened):
    opened.window._change_settings(Settings(theme="dark", text_scale=1.3, answer_tokens=512))
    assert opened.theme.dark
    saved = load_settings(opened.options.data_dir)
    assert (saved.theme, saved.text_scale, saved.answer_tokens) == ("dark", 1.3, 512)
    opened.ask()
    assert opened.service.named("submit")[0][0].max_tokens == 512
    assert opened.service.named("read_by") == []
    opened.window._change_settings(Settings(first_word_s=2.0))
    assert opened.service.named("read_by")[0][0].first_word_s == 2.0


@pytest.mark.parametrize(("width", "overlays"), [(900, True), (1099, True), (1100, False), (1600, False)])
def test_the_right_pane_overlays_narrow_windows(opened, width, overlays):
    window = opened.window
    window.resize(width, 600)
    window.shell.show_right(True)
    assert window.shell.overlays == overlays
    assert window.size().width() == width
    assert window.right.geometry().right() == width - 1
    over = window.shell.centre.geometry().right() >= window.right.x()
    assert over == overlays
    window._escape()
    assert window.right.isVisible() != overlays


def test_it_fits_900_by_600(opened):
    opened.window.resize(900, 600)
    assert (opened.window.width(), opened.window.height()) == (900, 600)
    opened.window.toggle_left()
    assert opened.window.header.unfold.isVisible()
    assert opened.window.shell.centre.width() == 900


def test_every_control_has_a_name_and_a_tooltip(opened, qtbot):
    opened.ask()
    opened.service.answer_all()
    opened.service.send(IngestProgress(True, 9, 1, 0, 3, 1, 9, "/x/a.pdf", 1.0))
    opened.settle()
    for kind in (QAbstractButton, QLineEdit, QComboBox):
        for control in opened.window.findChildren(kind):
            if isinstance(control.parent(), QLineEdit | QTabBar):
                continue  # Qt's own, inside a control that has a name
            where = f"{control.metaObject().className()} {control.objectName()} {control.parent()}"
            assert control.accessibleName() or getattr(control, "text", str)(), where
            assert control.toolTip(), where
    for area in opened.window.findChildren(QAbstractScrollArea):
        assert area.accessibleName() or area.objectName().startswith("qt_"), area


def test_another_theme_repaints_everything(opened):
    opened.ask()
    opened.service.answer_all()
    opened.settle()
    opened.window._change_settings(Settings(theme="dark"))
    image = opened.window.grab().toImage()
    assert image.pixelColor(20, image.height() - 5).lightness() < 60
    assert opened.view is not None


def test_idle_work_is_said_in_the_inspector(opened):
    opened.service.send(IdleWorkDone(("a.pdf is warm: 90 tokens read.",)))
    opened.settle()
    assert opened.window.right.inspector.idle.said == ("a.pdf is warm: 90 tokens read.",)


def test_samples_fill_a_library_that_is_empty(open_window):
    samples = Path("/samples")
    opened = open_window(documents=(), samples=samples)
    assert opened.service.named("add_paths") == [[[samples]]]
    assert opened.window.pages.currentWidget() is opened.window.chat
    opened.service.request_documents()  # it was emptied by hand: they do not come back
    opened.settle()
    assert len(opened.service.named("add_paths")) == 1


def test_samples_stay_out_of_a_library_in_use(open_window):
    opened = open_window(samples=Path("/samples"))
    assert opened.service.named("add_paths") == []


def test_no_empty_page_shows_before_the_library_is_known(open_window, tmp_path):
    opened = open_window(documents=(), samples=tmp_path)
    chat = opened.window.chat
    assert not chat.empty.isVisible()  # the samples are on their way
    opened.service.request_documents()
    opened.settle()
    assert chat.empty.isVisible()


def test_typing_in_the_list_of_conversations_goes_into_the_question(opened, qtbot):
    conversations = opened.window.left.conversations
    conversations.setFocus()
    qtbot.keyClicks(conversations, "Who")
    assert opened.window.chat.input.text.startswith("W")


def test_what_belongs_to_no_model_outlives_a_new_one(opened):
    opened.service.send(Notice("The disk is full."))
    opened.service.send(EngineFailed("The model is damaged.", "Choose another one.", "tensor 3"))
    opened.settle()
    problems = [opened.window._problems.itemAt(i).widget().accessibleName() for i in range(2)]
    assert problems[1] == "The model is damaged. Choose another one. SmolLM2-135M-Instruct stays in use."
    opened.service.send(EngineReady(opened.window._model))
    opened.settle()
    assert opened.window._problems.count() == 1


def test_the_sample_documents_come_with_their_own_questions(open_window, parts):
    folder = sample_documents()
    mine = replace(parts.document(), path=str(folder / "travel-policy.pdf"))
    opened = open_window(documents=(mine,))
    assert [button.text() for button in opened.window.chat.prompts.buttons] == list(SAMPLE_EXAMPLES)
    opened.service.documents = (mine, parts.document(2))
    opened.service.request_documents()
    opened.settle()
    assert [button.text() for button in opened.window.chat.prompts.buttons] == list(EXAMPLES)


def test_a_pdf_opens_at_its_page_in_a_wide_pane(opened):
    path = str(sample_documents() / "travel-policy.pdf")
    more = {"block_id": "b", "quote": "a head", "media_type": "application/pdf", "n_pages": 3}
    window, service = opened.window, opened.service
    service.send(PassageLoaded(PassageText(5, "travel-policy.pdf", path, 2, "a head", (0, 6), **more)))
    opened.qtbot.waitUntil(lambda: bool(service.named("request_page")))
    document, page, width_px, block, quote = service.named("request_page")[0]
    assert (document, page, block, quote) == (5, 2, "b", "a head")
    assert window.right.width() > 500
    assert 500 < width_px <= window.right.width()
    service.send(PageLoaded(5, 2, render(path, "", 2, width_px, quote), "", "", block, quote))
    opened.settle()
    assert window.right.document.pages.paper.page.highlights
    assert len(service.named("request_page")) == 1
    window.right.show_tab(SOURCES)
    assert window.right.width() == 340


def test_a_document_that_was_removed_leaves_the_right_pane(opened, parts):
    window, service = opened.window, opened.service
    service.send(PassageLoaded(PassageText(5, "a.txt", "/a.txt", None, "The zebra.", (0, 3), "b", "The")))
    opened.settle()
    service.documents = (parts.document(5), parts.document(6))
    service.request_documents()
    opened.settle()
    assert window.right.document.text.toPlainText() == "The zebra."
    service.documents = (parts.document(6),)
    service.request_documents()
    opened.settle()
    assert window.right.document.text.toPlainText() == ""
    assert window.right._no_document.isVisible()
