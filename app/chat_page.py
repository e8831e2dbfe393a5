"""The chat: one conversation, the question being written, and the answer that is running."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QStackedWidget, QVBoxLayout, QWidget

from app.icons import pixmap
from app.message_list import COLUMN_PX, SIDE_PX, MessageList
from app.prompt_input import PromptInput
from app.theme import HEADING_PX, READING_PX, SMALL_PX, Theme
from app.turns import TurnState
from app.widgets import EmptyState, Label, TextButton
from app.wording import still_reading
from core.config import sample_documents
from core.types import DocumentInfo, IngestProgress, ModelInfo

EXAMPLES = (
    "What are these documents about?",
    "Which dates and deadlines are mentioned?",
    "Summarise the main points in three sentences.",
)
SAMPLE_EXAMPLES = (
    "How much is the deposit of flat 3?",
    "How do I clean the filter of the dishwasher?",
    "What did the allotment meeting decide about water?",
)
"""While nothing but the sample documents is in the library."""


_READING_AFTER_MS = 1000
"""What is read faster than this is not worth a word: nothing flashes."""


class Prompts(QWidget):
    """An empty conversation with a library: a heading and three quiet questions."""

    chosen = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 24, 0, 24)
        column.setSpacing(theme.px(8))
        column.addStretch(2)
        heading = Label(theme, "What would you like to know?", size=HEADING_PX, bold=True)
        column.addWidget(heading)
        self.subtitle = Label(theme, kind="muted")
        column.addWidget(self.subtitle)
        column.addSpacing(theme.px(8))
        self.buttons = [
            TextButton(theme, words, kind="prompt", tip="Ask this question") for words in EXAMPLES
        ]
        for button in self.buttons:
            button.clicked.connect(self._choose)
            if theme.kiosk:
                button.setFont(theme.font(READING_PX))
            column.addWidget(button)
        column.addStretch(3)

    def offer(self, questions: Sequence[str]) -> None:
        for button, words in zip(self.buttons, questions, strict=True):
            button.setText(words)
            button.setAccessibleName(words)

    def _choose(self) -> None:
        button = self.sender()
        if isinstance(button, TextButton):
            self.chosen.emit(button.text())


class ModelLine(QWidget):
    """Under the input: which model answers, and the caution that belongs to it."""

    choose = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        row = QHBoxLayout(self)
        row.setContentsMargins(4, 0, 0, 0)
        row.setSpacing(6)
        self._sign = QLabel()
        self._sign.setAccessibleName("Caution")
        self._sign.hide()
        row.addWidget(self._sign, 0, Qt.AlignmentFlag.AlignTop)
        self.words = Label(theme, "The model is loading…", kind="muted", size=SMALL_PX)
        row.addWidget(self.words, 1)
        self.button = TextButton(theme, "Choose a model…", kind="link", tip="Choose a GGUF model file")
        self.button.setVisible(False)
        self.button.clicked.connect(self.choose)
        row.addWidget(self.button, 0, Qt.AlignmentFlag.AlignVCenter)
        theme.changed.connect(self._tint)
        self._tint()

    def set_model(self, model: ModelInfo) -> None:
        name = f"{model.name} on {model.device}"
        caution = model.note.partition(". ")[0].rstrip(".")  # the settings have it whole
        self.words.setText(f"{name}. {caution}." if caution else name)
        self.words.setToolTip(model.note)
        self._sign.setVisible(bool(model.note))
        self.button.setVisible(bool(model.note) and not self._theme.kiosk)

    def say(self, words: str) -> None:
        self.words.setText(words)
        self.words.setToolTip("")
        self._sign.hide()

    def _tint(self) -> None:
        size = self._theme.px(16)
        self._sign.setPixmap(pixmap("caution", self._theme.tokens.muted, size, self.devicePixelRatioF()))


class ChatPage(QWidget):
    """Shows turns and takes questions. It knows no service: the window connects the two."""

    submitted = Signal(str)
    stopped = Signal()
    add_documents = Signal()
    choose_model = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._n_documents = 0
        self._known = False
        """Whether the library was told: until then neither of the empty pages is right."""
        self._turns: list[TurnState] = []
        self.setObjectName("centre")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 12)
        column.setSpacing(8)

        self.messages = MessageList(theme)
        add = TextButton(theme, "Add documents…", kind="primary", icon_name="new")
        add.clicked.connect(self.add_documents)
        if theme.kiosk:
            self.empty = EmptyState(theme, "There are no documents here yet. Please ask the staff.", None)
        else:
            self.empty = EmptyState(
                theme,
                "Add documents, or drop files and folders on this window. They stay on this computer.",
                add,
                title="Ask your own documents",
            )
        self.prompts = Prompts(theme)
        self.prompts.chosen.connect(self.submitted)
        self._prompts_page = QWidget()
        self._prompts_row = QHBoxLayout(self._prompts_page)
        self._prompts_row.addWidget(self.prompts)
        self._blank = QWidget()
        self.stack = QStackedWidget()
        self.stack.addWidget(self._blank)
        for page in (self.empty, self._prompts_page, self.messages):
            self.stack.addWidget(page)
        column.addWidget(self.stack, 1)

        self._foot = QVBoxLayout()
        self._foot.setSpacing(6)
        self.input = PromptInput(theme)
        self.input.submitted.connect(self.submitted)
        self.input.stopped.connect(self.stopped)
        self.model_line = ModelLine(theme)
        self.model_line.choose.connect(self.choose_model)
        self.reading = Label(theme, kind="muted", size=SMALL_PX)
        self.reading.setContentsMargins(4, 0, 4, 0)
        self.reading.hide()
        self._reading_delay = QTimer(self)
        self._reading_delay.setSingleShot(True)
        self._reading_delay.setInterval(_READING_AFTER_MS)
        self._reading_delay.timeout.connect(self.reading.show)
        self._foot.addWidget(self.reading)
        self._foot.addWidget(self.input)
        self._foot.addWidget(self.model_line)
        column.addLayout(self._foot)
        self._show_page()

    def set_documents(self, documents: Sequence[DocumentInfo]) -> None:
        self._known = True
        self._n_documents = sum(one.n_blocks > 0 for one in documents)
        self.input.scope.set_documents(documents)
        single = self._n_documents == 1
        whose = ("this" if single else "these") if self._theme.kiosk else "your"
        base = "document" if single else f"{self._n_documents:,} documents"
        samples = sample_documents()
        only_samples = samples is not None and all(Path(one.path).parent == samples for one in documents)
        self.prompts.offer(SAMPLE_EXAMPLES if only_samples else EXAMPLES)
        self.prompts.subtitle.setText(
            f"Answers come from {whose} {base}, with the passages they rest on. Nothing leaves this computer."
        )
        self._show_page()

    def set_reading(self, progress: IngestProgress) -> None:
        """Say what a question asked now may miss, unless it is read in a moment."""
        words = still_reading(progress)
        self.reading.setText(words)
        if not words:
            self._reading_delay.stop()
            self.reading.hide()
        elif not self.reading.isVisibleTo(self) and not self._reading_delay.isActive():
            self._reading_delay.start()

    @property
    def has_answers(self) -> bool:
        return any(turn.answer is not None for turn in self._turns)

    @property
    def first_question(self) -> str:
        """What this conversation is about until it has a title; empty if nothing was asked."""
        return self._turns[0].question if self._turns else ""

    def shows(self, turn: TurnState) -> bool:
        return any(turn is one for one in self._turns)

    def set_turns(self, turns: Sequence[TurnState]) -> None:
        self._turns = list(turns)
        self.messages.set_turns(turns)
        self._show_page()

    def append(self, turn: TurnState) -> None:
        self._turns.append(turn)
        self._show_page()
        self.messages.append(turn)

    def show_turn(self, turn_id: int | None, block_id: str) -> bool:
        """Scroll to where a turn gave a passage; False if it is not to be seen there."""
        return turn_id is not None and self.messages.show_turn(turn_id, block_id)

    def refresh(self, turn: TurnState) -> None:
        self.messages.refresh(turn)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        room = self.width() - 2 * SIDE_PX
        side = SIDE_PX + max(0, (room - self._theme.px(COLUMN_PX)) // 2)
        self._foot.setContentsMargins(side, 0, side, 0)
        self._prompts_row.setContentsMargins(side, 0, side, 0)

    def _show_page(self) -> None:
        if self._turns:
            self.stack.setCurrentWidget(self.messages)
        elif self._n_documents:
            self.stack.setCurrentWidget(self._prompts_page)
        else:
            self.stack.setCurrentWidget(self.empty if self._known else self._blank)
