"""The settings a user changes: model, looks, how passages are found and read."""

from pathlib import Path

from PySide6.QtCore import QStandardPaths, Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QVBoxLayout,
    QWidget,
)

from app.theme import SMALL_PX, Theme
from app.widgets import ElidedLabel, Label, TextButton, confirm
from core.config import Settings
from core.types import ModelInfo

_THEMES = (("As the system", "system"), ("Light", "light"), ("Dark", "dark"))
_SCALES = ((90, 0.9), (100, 1.0), (115, 1.15), (130, 1.3), (150, 1.5), (200, 2.0))
_MEANING = (("Automatically", "auto"), ("Always", "on"), ("Never", "off"))
_FIRST_WORDS = (
    ("When everything found is read", 0.0),
    ("Within 2 seconds", 2.0),
    ("Within 5 seconds", 5.0),
    ("Within 10 seconds", 10.0),
)
_REPEATED = (
    ("Read once", "content"),
    ("Read again, but for whole passages", "blocks"),
    ("Decided for each question", "auto"),
    ("Read again", "off"),
)
_IDLE = (("Read ahead on mains power", True), ("Do nothing", False))
_LENGTHS = (("Short", 128), ("Medium", 256), ("Long", 512), ("Very long", 1024))


def choose_model(parent: QWidget) -> Path | None:
    folder = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DownloadLocation)
    name, _ = QFileDialog.getOpenFileName(parent, "Choose a model", folder, "GGUF models (*.gguf)")
    return Path(name) if name else None


class SettingsDialog(QDialog):
    """Changes take effect at once; Close closes."""

    changed = Signal(object)
    """Carries the new `Settings`."""
    forget = Signal()
    """Everything the model has read is to be forgotten."""
    model_chosen = Signal(object)
    """Carries the `Path` of a GGUF."""

    def __init__(self, theme: Theme, settings: Settings, model: ModelInfo | None, parent: QWidget) -> None:
        super().__init__(parent)
        self._settings = settings
        self.setWindowTitle("Settings")
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 24, 24, 16)
        column.setSpacing(16)
        form = QFormLayout()
        form.setHorizontalSpacing(16)
        form.setVerticalSpacing(12)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)

        self.model_name = ElidedLabel(theme)
        self.note = Label(theme, kind="muted", size=SMALL_PX)
        self.note.setMaximumWidth(theme.px(320))
        self.model_name.setMinimumWidth(theme.px(240))
        self.show_model(model)
        choose = TextButton(theme, "Choose a model…", tip="Choose a GGUF model file")
        choose.clicked.connect(self._choose)
        form.addRow("Model", self.model_name)
        form.addRow("", self.note)
        row = QHBoxLayout()
        row.addWidget(choose)
        row.addStretch(1)
        form.addRow("", row)

        self.theme_box = self._box("Theme", _THEMES, settings.theme)
        self.scale_box = self._box(
            "Text size",
            tuple((f"{percent} % of normal", scale) for percent, scale in _SCALES),
            settings.text_scale,
        )
        self.length_box = self._box(
            "Answer length",
            tuple((f"{words}: up to {n:,} tokens", n) for words, n in _LENGTHS),
            settings.answer_tokens,
        )
        for words, box in (
            ("Theme", self.theme_box),
            ("Text size", self.scale_box),
            ("Answer length", self.length_box),
        ):
            form.addRow(words, box)
            box.currentIndexChanged.connect(self._change)
        self.meaning_box = self._box("Find by meaning", _MEANING, settings.find_by_meaning)
        self.meaning_box.setToolTip("Find passages that mean the same in other words, too")
        self.meaning_box.currentIndexChanged.connect(self._change)
        self.embedder_name = ElidedLabel(theme, kind="muted", size=SMALL_PX)
        other = TextButton(theme, "Choose…", tip="Choose a GGUF embedder, for example for other languages")
        other.clicked.connect(self._choose_embedder)
        row = QHBoxLayout()
        row.addWidget(self.meaning_box, 1)
        row.addWidget(other)
        form.addRow("Find by meaning", row)
        form.addRow("", self.embedder_name)
        self._show_embedder()
        self.first_box = self._box("First word", _FIRST_WORDS, settings.first_word_s)
        self.repeated_box = self._box("Repeated text", _REPEATED, settings.dedup)
        self.idle_box = self._box("While idle", _IDLE, settings.idle_work)
        for words, box, tip in (
            ("First word", self.first_box, "What takes longer is left out or read in part, and it is said"),
            ("Repeated text", self.repeated_box, "Text that stands in several passages of a question"),
            ("While idle", self.idle_box, "What is done while you read an answer"),
        ):
            form.addRow(words, box)
            box.setToolTip(tip)
            box.currentIndexChanged.connect(self._change)
        forget = TextButton(theme, "Forget what was read…", tip="Empty the cache, in memory and on disk")
        forget.clicked.connect(self._forget)
        row = QHBoxLayout()
        row.addWidget(forget)
        row.addStretch(1)
        form.addRow("Cache", row)
        column.addLayout(form)
        column.addWidget(
            Label(theme, "Your documents and questions stay on this computer.", kind="muted", size=SMALL_PX)
        )
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        close = TextButton(theme, "Close", kind="primary")
        close.setDefault(True)
        close.clicked.connect(self.accept)
        buttons.addWidget(close)
        column.addLayout(buttons)

    def show_model(self, model: ModelInfo | None) -> None:
        self.model_name.set_whole(f"{model.name} on {model.device}" if model is not None else "None loaded")
        if model is not None:
            self.model_name.setToolTip(model.path)
        self.say(model.note if model is not None else "")

    def say(self, words: str) -> None:
        """What there is to say about the model, or about the file that was chosen."""
        self.note.setText(words)
        self.note.setVisible(bool(words))
        self.adjustSize()

    def _box(self, name: str, choices: tuple[tuple[str, object], ...], now: object) -> QComboBox:
        box = QComboBox()
        box.setAccessibleName(name)
        box.setToolTip(name)
        for words, value in choices:
            box.addItem(words, value)
        at = box.findData(now)
        if at < 0:  # set by hand in the file
            box.addItem(f"{now} (from the settings file)", now)
            at = box.count() - 1
        box.setCurrentIndex(at)
        return box

    def _change(self) -> None:
        self._settings = self._settings.with_(
            theme=self.theme_box.currentData(),
            text_scale=self.scale_box.currentData(),
            answer_tokens=self.length_box.currentData(),
            find_by_meaning=self.meaning_box.currentData(),
            first_word_s=self.first_box.currentData(),
            dedup=self.repeated_box.currentData(),
            idle_work=self.idle_box.currentData(),
        )
        self.changed.emit(self._settings)

    def _show_embedder(self) -> None:
        path = self._settings.embedder
        self.embedder_name.set_whole(f"With {Path(path).name}" if path else "With the embedder for English")
        self.embedder_name.setToolTip(path)

    def _choose_embedder(self) -> None:
        path = choose_model(self)
        if path is not None:
            self._settings = self._settings.with_(embedder=str(path))
            self._show_embedder()
            self.changed.emit(self._settings)

    def _forget(self) -> None:
        explanation = (
            "The library and the conversations stay. The model will have to read your documents again, "
            "so the next answers take longer."
        )
        if confirm(self, "Forget what the model has read?", explanation, "Forget"):
            self.forget.emit()

    def _choose(self) -> None:
        path = choose_model(self)
        if path is not None:
            self.model_chosen.emit(path)
