"""What reading files is doing: how far it is, what could not be read, Pause and Cancel."""

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QProgressBar,
    QVBoxLayout,
    QWidget,
)

from app.theme import SMALL_PX, Theme
from app.widgets import ElidedLabel, IconButton, Label, TextButton
from app.wording import ingest_sentence, problem_line
from core.types import IngestProgress

_SHOW_AFTER_MS = 300
"""What is read faster than this shows no progress: nothing flashes."""
_PROBLEM_LINES = 4


class ReadingStrip(QWidget):
    """What is being read, how far it is, how long it still takes, Pause and Cancel."""

    cancelled = Signal()
    paused = Signal(bool)
    """The user wants reading to pause, or to go on."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._last: IngestProgress | None = None
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 4, 0, 8)
        column.setSpacing(6)
        row = QHBoxLayout()
        row.setSpacing(8)
        words = QVBoxLayout()
        words.setSpacing(2)
        self.current = ElidedLabel(theme, bold=True)
        self.facts = Label(theme, kind="muted", size=SMALL_PX)
        words.addWidget(self.current)
        words.addWidget(self.facts)
        row.addLayout(words, 1)
        self.pause = TextButton(theme, "Pause")
        self.pause.clicked.connect(self._pause)
        row.addWidget(self.pause, 0, Qt.AlignmentFlag.AlignTop)
        self.cancel = TextButton(theme, "Cancel", tip="Stop reading; files that are done stay")
        self.cancel.clicked.connect(self._cancel)
        row.addWidget(self.cancel, 0, Qt.AlignmentFlag.AlignTop)
        self.close_button = IconButton(theme, "close", "Hide this line")
        self.close_button.clicked.connect(self.hide)
        row.addWidget(self.close_button, 0, Qt.AlignmentFlag.AlignTop)
        column.addLayout(row)
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName("Reading files")
        column.addWidget(self.bar)
        self.problems = QListWidget()
        self.problems.setAccessibleName("Files that could not be read")
        self.problems.setWordWrap(True)
        self.problems.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.problems.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.problems.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.problems.setObjectName("problems")
        self.problems.hide()
        column.addWidget(self.problems)
        self._theme = theme
        self._delay = QTimer(self)
        self._delay.setSingleShot(True)
        self._delay.setInterval(_SHOW_AFTER_MS)
        self._delay.timeout.connect(self.show)
        self.hide()

    def show_progress(self, progress: IngestProgress) -> None:
        if progress.running and (self._last is None or not self._last.running):
            self.cancel.setText("Cancel")
            self.cancel.setEnabled(True)
            self._show_pause(paused=False)
            self._delay.start()
        if self._last is None or self._last.paused != progress.paused:
            self._show_pause(paused=progress.paused)
        self._last = progress
        self.cancel.setVisible(progress.running)
        self.pause.setVisible(progress.running)
        self.close_button.setVisible(not progress.running)
        self.bar.setVisible(progress.running)
        self.current.setVisible(progress.running)
        if progress.running:
            name = Path(progress.current).name
            words = f"Reading {name}" if name else "Looking for files…"
            self.current.set_whole("Paused" if progress.paused else words)
        else:
            self._delay.stop()
            # Nobody asked for what a watched folder brings: the list shows it, and what failed says why.
            said = not progress.watched and (progress.n_files > 0 or bool(progress.problems))
            self.setVisible(said)
        self.facts.setText(ingest_sentence(progress))
        base = progress.n_bytes or progress.n_files
        done = progress.n_bytes_done if progress.n_bytes else progress.n_done
        self.bar.setRange(0, 1000)
        self.bar.setValue(round(1000 * done / base) if base else 0)
        self._show_problems(progress.problems)

    def _show_problems(self, problems: Sequence[tuple[str, str]]) -> None:
        """Which files could not be read and why; some of them are in no list, since they do not exist."""
        self.problems.clear()
        for path, reason in problems:
            item = QListWidgetItem(problem_line(path, reason))
            item.setToolTip(path)
            self.problems.addItem(item)
        self.problems.setVisible(bool(problems))
        self.problems.setFixedHeight(self._theme.px(min(len(problems), _PROBLEM_LINES) * 26 + 10))

    def _pause(self) -> None:
        """The file in hand is finished first; one that takes long is left and read again later, from its
        beginning. The button says so until the core does.
        """
        wanted = self._last is None or not self._last.paused
        self.pause.setText("Pausing…" if wanted else "Going on…")
        self.pause.setEnabled(False)
        self.paused.emit(wanted)

    def _show_pause(self, *, paused: bool) -> None:
        words = "Resume" if paused else "Pause"
        self.pause.setText(words)
        self.pause.setAccessibleName(words)
        self.pause.setToolTip("Go on reading" if paused else "Read nothing further until Resume")
        self.pause.setEnabled(True)

    def _cancel(self) -> None:
        self.cancel.setText("Stopping…")
        self.cancel.setEnabled(False)
        self.cancelled.emit()
