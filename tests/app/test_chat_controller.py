from PySide6.QtCore import Qt, QUrl

from app.bridge import ServiceBridge
from app.chat_controller import Engine
from app.turns import Phase
from core.types import (
    AnswerText,
    CollectionInfo,
    ConversationInfo,
    ConversationsChanged,
    EngineReady,
    FinishReason,
    ModelInfo,
    Scope,
    Turn,
)

MODEL = ModelInfo("Tiny", "/m.gguf", 1, 512, "CPU")


def test_a_question_and_its_answer(opened, parts):
    opened.ask("What is the notice period?")
    question = opened.service.named("submit")[0][0]
    assert question.text == "What is the notice period?"
    assert question.conversation_id is None
    assert question.scope == Scope()
    assert opened.window.chat.input.text == ""
    opened.service.find()
    opened.settle()
    assert [chip.passage for chip in opened.view.sources.chips] == list(parts.answer().passages)
    assert opened.window.controller.conversation_id == 7
    opened.service.send(parts.progress(1, 6))
    opened.settle()
    assert opened.view.bar.isVisible()
    assert opened.view.status.text().startswith("Reading 2,230 of 2,310 tokens")
    opened.service.send(AnswerText(1, "Either **party"))
    opened.settle()
    assert opened.view.answer.isVisible()
    opened.service.finish()
    opened.settle()
    assert not opened.view.bar.isVisible()
    assert opened.view.cost.text() == "1,840 of 2,310 tokens reused · 3.1 s instead of about 15.2 s"
    assert opened.window.controller.running is None
    opened.ask("And then?")
    assert opened.service.named("submit")[1][0].conversation_id == 7


def test_stop_cancels(opened, qtbot):
    opened.ask()
    button = opened.window.chat.input.button
    assert button.accessibleName().startswith("Stop")
    button.click()
    assert opened.service.named("cancel") == [[1]]
    assert opened.view.status.text() == "Stopping…"
    opened.service.fail(cancelled=True)
    opened.settle()
    assert button.accessibleName().startswith("Send")


def test_escape_stops_too(opened, qtbot):
    opened.ask()
    opened.window.activateWindow()
    qtbot.waitActive(opened.window)
    qtbot.keyClick(opened.window.chat.input.edit, Qt.Key.Key_Escape)
    assert opened.service.named("cancel") == [[1]]


def test_a_stopped_answer_says_so(opened, parts):
    opened.ask()
    opened.service.finish(
        result=parts.answer(finish=FinishReason.CANCELLED, notes=("Stopped; what was said is kept.",))
    )
    opened.settle()
    notes = [opened.view._notes.itemAt(i).widget().text() for i in range(opened.view._notes.count())]
    assert notes == [
        "Stopped; what was said is kept.",
        "1 of 3 sentences found no support in the passages (dotted).",
    ]


def test_an_error_stands_in_the_flow(opened):
    opened.ask()
    opened.service.find()
    opened.service.fail()
    opened.settle()
    assert opened.turn.phase is Phase.FAILED
    problem = opened.view._notes.itemAt(0).widget()
    assert problem.message.text() == "The model ran out of memory."
    assert len(opened.view.sources.chips) == 2  # what was found stays
    height = opened.view.height()
    problem._toggle.click()
    assert problem._details.isVisible()
    assert opened.view.height() > height


def test_a_citation_shows_its_passage(opened, parts):
    opened.ask()
    opened.service.answer_all()
    opened.settle()
    opened.view.answer.anchorClicked.emit(QUrl("cite:1"))
    one = parts.answer().citations[0]
    assert opened.service.named("request_passage") == [[one.document_id, one.block_id, one.quote]]
    opened.settle()
    pane = opened.window.right
    assert pane.isVisible()
    assert pane.document.title.toolTip() == "/docs/contract-b.pdf"
    assert pane.document.place.text() == "Page 4"
    assert one.quote in pane.document.text.toPlainText()


def test_a_chip_shows_its_passage(opened, parts):
    opened.ask()
    opened.service.find()
    opened.settle()
    opened.view.sources.chips[1].click()
    one = parts.answer().passages[1]
    assert opened.service.named("request_passage") == [[2, one.block.id, one.quote]]


def test_while_the_model_loads_sources_are_shown_already(open_window):
    opened = open_window(ready=False)
    opened.ask("Why?")
    opened.service.find()
    opened.settle()
    assert len(opened.view.sources.chips) == 2
    assert opened.view.status.text() == "The model is loading… The answer follows then."
    opened.service.send(EngineReady(MODEL))
    opened.settle()
    assert opened.view.status.text() == "2 passages found. Waiting for the model…"


def test_until_there_is_a_service_the_question_waits_in_the_box(open_window, monkeypatch):
    opened = open_window(ready=False)
    monkeypatch.setattr(ServiceBridge, "ready", False)
    opened.ask("Why?")
    assert opened.service.named("submit") == []
    assert opened.window.chat.input.text == "Why?"
    assert "The model is loading…" in opened.window.chat.input.message.text()
    opened.window.chat.input.clear()
    opened.window.chat.prompts.buttons[0].click()
    assert opened.window.chat.input.text == opened.window.chat.prompts.buttons[0].text()
    assert opened.window.controller.engine is Engine.LOADING


def test_one_question_at_a_time(opened):
    opened.ask("First?")
    opened.ask("Second?")
    assert len(opened.service.named("submit")) == 1
    assert opened.window.chat.input.text == "Second?"


def test_a_running_answer_goes_on_in_the_background(opened, parts):
    opened.service.turns = {3: (Turn(1, "Old?", parts.answer()),)}
    opened.ask("New?")
    opened.service.find(1, 9)
    opened.settle()
    opened.window.controller.open(3)
    opened.settle()
    assert [turn.question for turn in opened.window.chat._turns] == ["Old?"]
    opened.service.send(AnswerText(1, "Hello"))
    opened.settle()
    opened.window.controller.open(9)
    opened.settle()
    assert opened.turn.question == "New?"
    assert opened.turn.text == "Hello"
    opened.service.finish(1, 9)
    opened.settle()
    assert opened.window.controller.conversation_id == 9


def test_a_new_chat_is_not_pulled_back_by_an_old_answer(opened):
    opened.ask("Old?")
    opened.window.new_chat()
    opened.service.find(1, 9)
    opened.settle()
    assert opened.window.controller.conversation_id is None
    assert opened.window.chat._turns == []


def test_deleting_the_shown_conversation_starts_a_new_one(opened, monkeypatch):
    monkeypatch.setattr("app.main_window.confirm", lambda *_: True)
    opened.window.controller.open(7)
    opened.settle()
    opened.window._delete_conversation(ConversationInfo(7, "Notice periods", 2, 0.0))
    opened.settle()
    assert opened.service.named("delete_conversation") == [[7]]
    assert opened.window.controller.conversation_id is None


def test_the_title_follows_the_conversation(opened):
    opened.ask()
    opened.service.find(1, 12)
    opened.service.send(ConversationsChanged((ConversationInfo(12, "Notice", 1, 0.0),)))
    opened.settle()
    assert opened.window.header.title.toolTip() == "Notice"
    opened.window.new_chat()
    assert opened.window.header.title.toolTip() == "New chat"


def test_the_session_adds_up(opened):
    for ticket in (1, 2):
        opened.ask()
        opened.service.answer_all(ticket)
        opened.settle()
    assert opened.window.controller.totals.n_questions == 2
    assert opened.window.controller.totals.n_prompt_tokens == 4620
    rows = dict(opened.window.right.inspector.session.rows())
    assert rows["Hit ratio"] == "79.7 % (3,680 of 4,620 tokens)"


def test_an_example_leaves_what_is_being_written(opened):
    opened.window.chat.input.set_text("Half a ques")
    opened.window.chat.prompts.buttons[1].click()
    assert opened.service.named("submit")[0][0].text == opened.window.chat.prompts.buttons[1].text()
    assert opened.window.chat.input.text == "Half a ques"


def test_after_a_failed_first_question_the_next_one_starts_anew(opened):
    """The core keeps no conversation without an answer."""
    opened.ask()
    opened.service.find(1, 7)
    opened.service.fail()
    opened.settle()
    opened.ask("Again?")
    assert opened.service.named("submit")[1][0].conversation_id is None
    opened.service.answer_all(2, 8)
    opened.settle()
    opened.ask("More?")
    opened.service.fail(3)
    opened.settle()
    opened.ask("And?")
    assert opened.service.named("submit")[3][0].conversation_id == 8


def test_nothing_found_is_said_while_the_model_is_busy(opened):
    opened.ask()
    assert opened.view.status.text() == "Looking through the documents…"
    opened.service.find(passages=())
    opened.settle()
    assert opened.view.status.text() == "No passage found. Waiting for the model…"


def test_a_collection_is_asked_about(open_window, parts):
    opened = open_window(
        documents=(parts.document(1, collection_id=4),), collections=(CollectionInfo(4, "Flat"),)
    )
    opened.window.chat.input.scope.choose(Scope(collection_id=4))
    opened.ask()
    assert opened.service.named("submit")[0][0].scope == Scope(collection_id=4)
