"""The inspector: the prefill instrument, what it says in words, and this question's numbers."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QGridLayout, QScrollArea, QVBoxLayout, QWidget

from app.instrument import Instrument, Legend, tokens_by_tier
from app.standing import StandingList
from app.theme import SMALL_PX, Theme
from app.turns import TurnState
from app.widgets import Label
from app.wording import cache_rows, metric_rows, reading, session_rows, speed
from core.metrics import cost_sentence, miss_sentence
from core.types import CacheState, SessionTotals


class NumberTable(QWidget):
    """Names at the left, numbers with their units at the right."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(6)
        self._grid.setColumnStretch(1, 1)
        self._cells: list[tuple[Label, Label]] = []
        self._n_rows = 0

    def rows(self) -> list[tuple[str, str]]:
        return [(name.text(), value.text()) for name, value in self._cells[: self._n_rows]]

    def set_rows(self, rows: list[tuple[str, str]]) -> None:
        while len(self._cells) < len(rows):
            name, value = Label(self._theme, kind="muted"), Label(self._theme)
            name.setWordWrap(False)
            name.setAlignment(Qt.AlignmentFlag.AlignTop)
            value.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop)
            self._grid.addWidget(name, len(self._cells), 0)
            self._grid.addWidget(value, len(self._cells), 1)
            self._cells.append((name, value))
        for (name, value), (words, number) in zip(self._cells, rows, strict=False):
            name.setText(words)
            value.setText(number)
            value.setAccessibleName(f"{words}: {number}")
        for row, cells in enumerate(self._cells):
            for cell in cells:
                cell.setVisible(row < len(rows))
        self._n_rows = len(rows)
        self.setVisible(bool(rows))


class Sentences(QWidget):
    """A heading and what is said under it; hidden while nothing is."""

    def __init__(self, theme: Theme, heading: str, above_px: int) -> None:
        super().__init__()
        self._theme = theme
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, above_px, 0, 0)
        self._column.setSpacing(8)
        self._column.addWidget(Label(theme, heading, bold=True))
        self._labels: list[Label] = []
        self._said: tuple[str, ...] = ()
        self.hide()

    @property
    def said(self) -> tuple[str, ...]:
        return self._said

    def say(self, sentences: Sequence[str]) -> None:
        self._said = tuple(sentences)
        while len(self._labels) < len(sentences):
            self._labels.append(Label(self._theme))
            self._column.addWidget(self._labels[-1])
        for index, label in enumerate(self._labels):
            label.setText(sentences[index] if index < len(sentences) else "")
            label.setVisible(index < len(sentences))
        self.setVisible(bool(sentences))


class Inspector(QScrollArea):
    """Follows one turn, live while it is being read."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._turn: TurnState | None = None
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("Inspector")
        inner = QWidget()
        inner.setObjectName("pane")
        column = QVBoxLayout(inner)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(8)

        column.addWidget(Label(theme, "This question", bold=True))
        self.live = Label(theme, kind="muted", size=SMALL_PX)
        self.bar = Instrument(theme)
        self.bar.pointed.connect(self._show_chunk)
        self.pointed = Label(theme, kind="muted", size=SMALL_PX)
        self.pointed.setMinimumHeight(theme.px(18))
        self.legend = Legend(theme)
        self.sentence = Label(theme)
        column.addWidget(self.bar)
        column.addWidget(self.live)
        column.addWidget(self.legend)
        column.addWidget(self.pointed)
        column.addWidget(self.sentence)
        self.why = Sentences(theme, "Why this prompt", 8)
        column.addWidget(self.why)
        self.standing = StandingList(theme, 8)
        column.addWidget(self.standing)
        column.addSpacing(8)
        self.table = NumberTable(theme)
        column.addWidget(self.table)
        column.addSpacing(16)
        self._session_heading = Label(theme, "Since the start of the program", bold=True)
        column.addWidget(self._session_heading)
        self.session = NumberTable(theme)
        column.addWidget(self.session)
        column.addSpacing(16)
        self._kept_heading = Label(theme, "Kept for later", bold=True)
        column.addWidget(self._kept_heading)
        self.kept = NumberTable(theme)
        column.addWidget(self.kept)
        self.idle = Sentences(theme, "While idle", 16)
        column.addWidget(self.idle)
        column.addStretch(1)
        self.setWidget(inner)
        self._show_chunk("")
        self.show_turn(None)
        self.set_totals(SessionTotals())
        self.set_kept(None)

    def show_turn(self, turn: TurnState | None) -> None:
        """Show what a turn costs or did cost. Cheap enough to call for every progress."""
        self._turn = turn
        chunks = turn.chunks if turn is not None else ()
        sentence = self._sentence(turn)
        self.sentence.setText(sentence)
        self.bar.setVisible(bool(chunks))
        self.legend.setVisible(bool(chunks))
        self.pointed.setVisible(bool(chunks))
        progress = turn.live_progress if turn is not None else None
        live = progress is not None and turn is not None and turn.running
        self.live.setVisible(live)
        if progress is not None and live:
            self.live.setText(speed(progress))
        if turn is not None and chunks:
            self.bar.set_chunks(chunks, turn.n_deduplicated_tokens, sentence, turn.n_ahead_tokens)
            self.legend.set_tokens(tokens_by_tier(self.bar.chunks))
        metrics = turn.metrics if turn is not None else None
        self.table.set_rows(metric_rows(metrics) if metrics is not None else [])
        self.table.setVisible(metrics is not None)
        answer = turn.answer if turn is not None else None
        told = answer if not self._theme.kiosk else None
        self.why.say(told.plan if told is not None else ())
        self.standing.show_standings(told.standings if told is not None else ())

    def set_idle_work(self, sentences: Sequence[str]) -> None:
        """What was done last while nobody waited. Not in public: it names documents."""
        if not self._theme.kiosk:
            self.idle.say(sentences)

    def set_totals(self, totals: SessionTotals) -> None:
        self._session_heading.setVisible(totals.n_questions > 0)
        self.session.set_rows(session_rows(totals))
        self.session.setVisible(totals.n_questions > 0)

    def set_kept(self, state: CacheState | None) -> None:
        rows = cache_rows(state) if state is not None else []
        self._kept_heading.setVisible(bool(rows))
        self.kept.set_rows(rows)

    def _sentence(self, turn: TurnState | None) -> str:
        if turn is None:
            return "Ask something, and this shows what was read anew and what was reused."
        if turn.metrics is not None:
            parts = (cost_sentence(turn.metrics), miss_sentence(turn.metrics))
            return " · ".join(part for part in parts if part)
        if turn.progress is not None:
            return reading(turn.progress)
        return "Nothing has been read yet." if turn.running else "This question was not read."

    def _show_chunk(self, words: str) -> None:
        self.pointed.setText(words or "Point at a part of the bar to see what it is.")
