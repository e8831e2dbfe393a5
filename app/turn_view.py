"""One question and its answer, as they stand on the page."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.answer_view import AnswerView
from app.instrument import Instrument, Legend, tokens_by_tier
from app.sources_row import SourcesRow
from app.theme import READING_PX, SMALL_PX, Theme
from app.turns import Phase, TurnState
from app.widgets import GAP, IconButton, Label, Problem, clear, copy_text
from app.wording import doubt_sentence, progress_sentence
from core.metrics import cost_sentence, count


class TurnView(QWidget):
    """Shows one `TurnState`; `refresh` follows it, `fit` gives it a width."""

    cited = Signal(object)
    """Carries the clicked `Citation`."""
    opened = Signal(object)
    """Carries the `Passage` of a clicked chip."""
    traced = Signal(object)
    """Carries the `Standing` of a passage whose earlier turn is wanted."""
    spotted = Signal(object)
    """Carries the `Spot` of text that a passage leaves out."""
    inspected = Signal(object)
    """The user asked what this answer cost; carries the `TurnState`."""
    resized = Signal(object)
    """Something was opened or closed; carries the `TurnState`."""

    def __init__(self, theme: Theme, turn: TurnState) -> None:
        super().__init__()
        self._theme = theme
        self.turn = turn
        self._finished = False
        self._column = column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.px(12))

        self.question = Label(theme, turn.question, size=READING_PX, bold=True)
        self.question.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.question.setAccessibleName(f"Question: {turn.question}")
        column.addWidget(self.question)

        self.sources = SourcesRow(theme, turn)
        self.sources.opened.connect(self.opened)
        self.sources.traced.connect(self.traced)
        self.sources.spotted.connect(self.spotted)
        self.sources.resized.connect(self._say_resized)
        column.addWidget(self.sources)

        self._progress = QWidget()
        progress = QVBoxLayout(self._progress)
        progress.setContentsMargins(0, 0, 0, 0)
        progress.setSpacing(6)
        self.bar = Instrument(theme, slim=not theme.kiosk)
        self._legend = Legend(theme)
        self._legend.setVisible(theme.kiosk)
        self.status = Label(theme, kind="muted", size=SMALL_PX)
        for part in (self.bar, self._legend, self.status):
            progress.addWidget(part)
        column.addWidget(self._progress)

        self.answer = AnswerView(theme, may_open_links=not theme.kiosk)
        self.answer.cited.connect(self.cited)
        column.addWidget(self.answer)

        self._notes = QVBoxLayout()
        self._notes.setSpacing(4)
        column.addLayout(self._notes)

        self._foot = QWidget()
        foot = QHBoxLayout(self._foot)
        foot.setContentsMargins(0, 0, 0, 0)
        foot.setSpacing(GAP)
        self.cost = Label(theme, kind="muted", size=SMALL_PX)
        foot.addWidget(self.cost, 1)
        self.copy_button = IconButton(theme, "copy", "Copy this answer")
        self.copy_button.clicked.connect(self._copy)
        self.copy_button.setVisible(not theme.kiosk)  # nowhere to paste it
        self.inspect_button = IconButton(theme, "inspector", "Show what this answer cost")
        self.inspect_button.clicked.connect(self._inspect)
        self.inspect_button.setVisible(not theme.kiosk)
        foot.addWidget(self.copy_button)
        foot.addWidget(self.inspect_button)
        column.addWidget(self._foot)
        self.refresh()

    def refresh(self) -> None:
        """Show what the turn has become."""
        turn = self.turn
        self.sources.refresh()
        self.sources.setVisible(bool(turn.passages))
        self._show_progress()
        self.answer.setVisible(bool(turn.text))
        if turn.answer is not None:
            if not self._finished:
                self._finish()
        elif turn.text:
            self.answer.show_text(turn.text)
        if turn.failure is not None and not self._finished:
            self._fail()
        self._foot.setVisible(turn.answer is not None)

    def tick(self) -> None:
        """Time passed while the prompt is being read; nothing changes its size."""
        self._show_progress()

    def fit(self, width: int) -> int:
        """Lay everything out at ``width`` and return the height it needs, both in pixels."""
        self.sources.fit(width)
        self.answer.fit(width)
        for part in (self.sources, self._progress, self.answer, self._foot):
            part.updateGeometry()  # what appeared just now is measured now, not with the next event
        self._column.invalidate()
        self._column.activate()
        return self._column.totalHeightForWidth(width)

    def focus_chain(self) -> list[QWidget]:
        """What Tab visits, in reading order."""
        return [*self.sources.focus_chain(), self.answer, self.copy_button, self.inspect_button]

    def focus_passage(self, block_id: str) -> bool:
        """Put the focus on a passage's chip, or on the answer where the passage has none: False."""
        chip = self.sources.reveal(block_id)
        (chip or self.answer).setFocus(Qt.FocusReason.OtherFocusReason)
        return chip is not None

    def _show_progress(self) -> None:
        turn = self.turn
        keep = self._theme.kiosk and bool(turn.chunks)
        self._progress.setVisible(turn.running or keep)
        if turn.stopping and turn.running:
            self.status.setText("Stopping…")
        elif turn.phase is Phase.ANSWERING:
            self.status.setText("Answering…")
        elif turn.running and (progress := turn.live_progress) is not None:
            self.status.setText(progress_sentence(progress))
        elif turn.running:
            self.status.setText(self._waiting())
        self.status.setVisible(turn.running)
        self.bar.setVisible(bool(turn.chunks))
        self.bar.set_chunks(turn.chunks, turn.n_deduplicated_tokens, self.status.text(), turn.n_ahead_tokens)
        self._legend.set_tokens(tokens_by_tier(self.bar.chunks))

    def _waiting(self) -> str:
        turn = self.turn
        if turn.loading:
            return "The model is loading… The answer follows then."
        if not turn.searched:
            return "Looking through the documents…"
        found = count(len(turn.passages), "passage") if turn.passages else "No passage"
        return f"{found} found. Waiting for the model…"

    def _finish(self) -> None:
        answer = self.turn.answer
        if answer is None:
            return
        self._finished = True
        self.answer.show_answer(answer)
        notes = list(answer.notes)
        if answer.passages:
            notes += filter(None, [doubt_sentence(answer.sentences)])
        clear(self._notes)
        for note in notes:
            self._note(note)
        self.cost.setText(cost_sentence(answer.metrics))

    def _fail(self) -> None:
        failure = self.turn.failure
        if failure is None:
            return
        self._finished = True
        clear(self._notes)
        if failure.cancelled:
            words = f"{failure.message} {failure.hint}".strip() or "Stopped."
            self._note(words)
            return
        problem = Problem(self._theme, failure.message, failure.hint, failure.details)
        problem.resized.connect(self._say_resized)
        self._notes.addWidget(problem)
        problem.show()

    def _note(self, words: str) -> None:
        label = Label(self._theme, words, kind="muted", size=SMALL_PX)
        self._notes.addWidget(label)
        label.show()  # now, not with the next event: it is measured before

    def _say_resized(self) -> None:
        self.resized.emit(self.turn)

    def _copy(self) -> None:
        copy_text(self.turn.text)

    def _inspect(self) -> None:
        self.inspected.emit(self.turn)
