"""Connects the chat page and the right pane with the service: questions down, answers up."""

from enum import StrEnum
from typing import Final

from PySide6.QtCore import QObject, QTimer, Signal

from app.bridge import ServiceBridge
from app.chat_page import ChatPage
from app.right_pane import RightPane
from app.turns import Phase, TurnState, counted
from core.config import Settings
from core.types import (
    AnswerDone,
    Citation,
    ConversationLoaded,
    Passage,
    Question,
    QuestionFailed,
    SamplingOptions,
    SessionTotals,
    SourcesFound,
    Spot,
    Standing,
    TicketEvent,
)

TICK_MS: Final = 100
"""How often the clock of a running prefill is shown anew."""


class Engine(StrEnum):
    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"
    """No model: questions are still taken, since the sources are found without one."""
    ABSENT = "absent"
    """The service itself could not be made."""


class ChatController(QObject):
    """Owns the turns. One question runs at a time; it goes on while another conversation is read."""

    place_changed = Signal()
    """Another conversation is shown, or a new one got its number."""
    passage_wanted = Signal()
    """The user asked to see a passage; it arrives as PassageLoaded."""
    turn_wanted = Signal()
    """The user asked to see a turn of the conversation."""
    inspected = Signal()

    def __init__(self, bridge: ServiceBridge, page: ChatPage, pane: RightPane, settings: Settings) -> None:
        super().__init__()
        self._bridge = bridge
        self._page = page
        self._pane = pane
        self.settings = settings
        self.engine = Engine.LOADING
        self.conversation_id: int | None = None
        self.totals = SessionTotals()
        self._tickets: dict[int, TurnState] = {}
        self._forgotten: set[int] = set()
        """Tickets whose conversation goes as soon as they end (kiosk)."""
        self._clock = QTimer(page)  # it ends with what it draws
        self._clock.setInterval(TICK_MS)
        self._clock.timeout.connect(self._tick)
        page.submitted.connect(self.ask)
        page.stopped.connect(self.stop)
        page.messages.cited.connect(self.show_citation)
        page.messages.opened.connect(self.show_source)
        page.messages.inspected.connect(self._inspect)
        pane.opened.connect(self.show_source)
        for part in (page.messages, pane):
            part.traced.connect(self.show_earlier)
            part.spotted.connect(self.show_spot)

    @property
    def running(self) -> TurnState | None:
        """The turn that is being answered now."""
        return next(iter(self._tickets.values()), None)

    def ask(self, text: str) -> None:
        """Send a question, or say in words why that must wait. Its text is never lost."""
        box = self._page.input
        if self.running is not None:
            box.say("One answer at a time: Esc stops this one.")
            return
        if not self._bridge.ready:
            if not box.text.strip():
                box.set_text(text)
            loading = self.engine is Engine.LOADING
            box.say("The model is loading… Please send it in a moment." if loading else "Nothing can answer.")
            return
        settings = self.settings
        question = Question(
            text,
            self.conversation_id,
            box.scope.scope,
            settings.answer_tokens,
            SamplingOptions(settings.temperature, settings.top_p, settings.seed),
        )
        ticket = self._bridge.submit(question)
        if ticket is None:
            return
        turn = TurnState(text, self.conversation_id, ticket, loading=self.engine is Engine.LOADING)
        self._tickets[ticket] = turn
        if box.text.strip() == text:  # an example that was clicked leaves what is being written
            box.clear()
        box.set_running(True)
        self._page.append(turn)
        self._pane.show_turn(turn)

    def set_engine(self, engine: Engine) -> None:
        self.engine = engine
        self._page.input.say("")
        running = self.running
        if running is not None and running.loading:
            running.loading = False
            self._page.refresh(running)

    def stop(self) -> None:
        turn = self.running
        if turn is None or turn.ticket is None:
            return
        turn.stopping = True
        self._bridge.cancel(turn.ticket)
        self._page.refresh(turn)

    def take(self, event: TicketEvent) -> None:
        """An event of a question that was asked here."""
        turn = self._tickets.get(event.ticket)
        if turn is None:
            return
        turn.apply(event)
        if turn.phase is Phase.READING:
            self._clock.start()
        if isinstance(event, SourcesFound | AnswerDone) and self._page.shows(turn):
            new = self.conversation_id != event.conversation_id
            self.conversation_id = event.conversation_id
            if new:
                self.place_changed.emit()
        if isinstance(event, QuestionFailed) and self._page.shows(turn) and not self._page.has_answers:
            self.conversation_id = None  # the core keeps no conversation without an answer
            self.place_changed.emit()
        if isinstance(event, AnswerDone | QuestionFailed):
            self._end(event.ticket, turn)
        self._page.refresh(turn)
        if self._pane.turn is turn:
            self._pane.show_turn(turn)

    def loaded(self, event: ConversationLoaded) -> None:
        if event.conversation_id != self.conversation_id:
            return
        turns = [TurnState.of(turn, event.conversation_id) for turn in event.turns]
        running = self.running
        if running is not None and running.conversation_id == event.conversation_id:
            turns.append(running)
        self._page.set_turns(turns)
        self._pane.show_turn(turns[-1] if turns else None)

    def open(self, conversation_id: int) -> None:
        self.conversation_id = conversation_id
        self._bridge.request_conversation(conversation_id)
        self.place_changed.emit()

    def new_chat(self) -> None:
        self.conversation_id = None
        self._page.set_turns([])
        self._pane.show_turn(None)
        self._page.input.edit.setFocus()
        self.place_changed.emit()

    def delete(self, conversation_id: int) -> None:
        self._bridge.delete_conversation(conversation_id)
        if conversation_id == self.conversation_id:
            self.new_chat()

    def forget(self) -> None:
        """Clear the screen and what was said, for the next visitor. A running answer is stopped first."""
        running = self.running
        if running is not None and running.ticket is not None:
            self._forgotten.add(running.ticket)
            self.stop()
        elif self.conversation_id is not None:
            self._bridge.delete_conversation(self.conversation_id)
        self._page.input.clear()
        self.new_chat()

    def show_citation(self, citation: Citation) -> None:
        self._bridge.request_passage(citation.document_id, citation.block_id, citation.quote)
        self.passage_wanted.emit()

    def show_source(self, passage: Passage) -> None:
        self._bridge.request_passage(passage.place.document_id, passage.block.id, passage.quote)
        self.passage_wanted.emit()

    def show_spot(self, spot: Spot) -> None:
        self._bridge.request_passage(spot.document_id, spot.block_id, spot.quote)
        self.passage_wanted.emit()

    def show_earlier(self, standing: Standing) -> None:
        """Go to the turn that gave a passage's text, and to its document where that turn does not show it."""
        self.turn_wanted.emit()
        if not self._page.show_turn(standing.turn_id, standing.spot.block_id):
            self.show_spot(standing.spot)

    def _end(self, ticket: int, turn: TurnState) -> None:
        del self._tickets[ticket]
        if turn.metrics is not None:
            self.totals = counted(self.totals, turn.metrics)
            self._pane.set_totals(self.totals)
        if ticket in self._forgotten:
            self._forgotten.discard(ticket)
            if turn.conversation_id is not None:
                self._bridge.delete_conversation(turn.conversation_id)
        if self.running is None:
            self._page.input.set_running(False)

    def _tick(self) -> None:
        turn = self.running
        if turn is None or turn.phase is not Phase.READING:
            self._clock.stop()
            return
        self._page.messages.tick(turn)
        self._pane.tick(turn)

    def _inspect(self, turn: TurnState) -> None:
        self._pane.show_turn(turn)
        self.inspected.emit()
