"""The window: three columns, two pages, and where each event of the core goes.

In kiosk mode it fills the screen with one column, takes no files, and ignores Ctrl+Q and Alt+F4:
Ctrl+Alt+Q closes it.
"""

from pathlib import Path

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import (
    QCloseEvent,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDropEvent,
    QKeySequence,
    QShortcut,
    QShowEvent,
)
from PySide6.QtWidgets import QApplication, QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from app.bridge import ServiceBridge
from app.chat_controller import ChatController, Engine
from app.chat_page import ChatPage
from app.header import Header
from app.kiosk import IdleWatch
from app.left_bar import LeftBar
from app.library_controller import LibraryController
from app.library_page import LibraryPage
from app.right_pane import INSPECTOR, RightPane
from app.settings_dialog import SettingsDialog, choose_model
from app.shell import Shell
from app.theme import Theme
from app.widgets import Problem, TextButton, confirm
from core.config import Settings, WindowOptions, save_settings
from core.errors import SettingsError, SlipstreamError
from core.types import (
    CacheState,
    CollectionsChanged,
    ConversationInfo,
    ConversationLoaded,
    ConversationsChanged,
    EmbeddingProgress,
    EngineFailed,
    EngineReady,
    Event,
    IdleWorkDone,
    IngestProgress,
    LibraryChanged,
    ModelInfo,
    Notice,
    PageLoaded,
    PassageLoaded,
    TextLoaded,
    TicketEvent,
    WarmthChanged,
    WatchedFoldersChanged,
)


class MainWindow(QMainWindow):
    def __init__(self, options: WindowOptions, theme: Theme, bridge: ServiceBridge) -> None:
        super().__init__()
        self._options = options
        self._theme = theme
        self._bridge = bridge
        self._settings = options.settings
        self._model: ModelInfo | None = None
        self._wanted_model: Path | None = None
        self._model_problem: Problem | None = None
        self._dialog: SettingsDialog | None = None
        self._may_close = not options.kiosk
        self._titles: dict[int, str] = {}
        self.setWindowTitle("Slipstream")
        self.setAcceptDrops(not options.kiosk)

        self.left = LeftBar(theme)
        self.chat = ChatPage(theme)
        self.library = LibraryPage(theme)
        self.right = RightPane(theme)
        self.pages = QStackedWidget()
        self.pages.addWidget(self.chat)
        self.pages.addWidget(self.library)
        self.shell = Shell(theme, self.left, self._centre(), self.right)
        self.setCentralWidget(self.shell)
        self.controller = ChatController(bridge, self.chat, self.right, options.settings)
        self.documents = LibraryController(theme, bridge, self.library, self.chat, options.samples)
        self._connect()
        if options.kiosk:
            self.idle = IdleWatch(
                options.settings.kiosk_idle_s,
                lambda: self.controller.running is not None,
                lambda: not self.chat.first_question and not self.chat.input.text,
            )
            self.idle.idle.connect(self.start_over)
            self.idle.warned.connect(self._warn)
            self.idle.start()
            QApplication.instance().installEventFilter(self.idle)  # type: ignore[union-attr]
        else:
            self.setMinimumSize(720, 480)
            self.resize(1280, 820)

    # --- building -----------------------------------------------------------------------------------

    def _centre(self) -> QWidget:
        centre = QWidget()
        centre.setObjectName("centre")
        centre.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        column = QVBoxLayout(centre)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        self.header = Header(self._theme)
        column.addWidget(self.header)
        self._problems = QVBoxLayout()
        self._problems.setContentsMargins(24, 0, 24, 8)
        self._problems.setSpacing(8)
        column.addLayout(self._problems)
        column.addWidget(self.pages, 1)
        return centre

    def _connect(self) -> None:
        bridge, left, library = self._bridge, self.left, self.library
        bridge.arrived.connect(self._take)
        bridge.started.connect(bridge.request_library)
        bridge.refused.connect(self._refuse)
        left.new_chat.connect(self.new_chat)
        left.library.connect(self.show_library)
        left.settings.connect(self.show_settings)
        left.collapsed.connect(self.toggle_left)
        left.conversations.opened.connect(self._open_conversation)
        left.conversations.deleted.connect(self._delete_conversation)
        left.conversations.typed.connect(self._type)
        library.added.connect(self.add_paths)
        self.chat.add_documents.connect(library.choose_files)
        self.chat.choose_model.connect(self.choose_model)
        self.controller.place_changed.connect(self._show_place)
        self.controller.turn_wanted.connect(self._show_chat)
        self.controller.inspected.connect(self._show_inspector)
        self.right.closed.connect(self._hide_right)
        self.right.widened.connect(self.shell.show_wide)
        self.right.document.page_wanted.connect(bridge.request_page)
        self.right.document.text_wanted.connect(bridge.request_text)
        self.header.unfold.clicked.connect(self.toggle_left)
        self.header.toggle_right.clicked.connect(self._toggle_right)
        self.header.restart.clicked.connect(self.start_over)
        keys = {"Esc": self._escape}
        if self._options.kiosk:
            keys["Ctrl+Alt+Q"] = self.force_close
        else:
            keys |= {
                "Ctrl+N": self.new_chat,
                "Ctrl+L": self.show_library,
                "Ctrl+B": self.toggle_left,
                "Ctrl+I": self._toggle_right,
                "Ctrl+,": self.show_settings,
                "Ctrl+Q": self.force_close,
            }
        for key, do in keys.items():
            QShortcut(QKeySequence(key), self, do)

    # --- events ---------------------------------------------------------------------------------------

    def _take(self, event: Event) -> None:
        match event:
            case TicketEvent():
                self.controller.take(event)
            case EngineReady():
                self._engine_ready(event.model)
            case EngineFailed():
                self._engine_failed(event)
            case (
                IngestProgress()
                | EmbeddingProgress()
                | LibraryChanged()
                | CollectionsChanged()
                | WarmthChanged()
                | WatchedFoldersChanged()
            ):
                self.documents.take(event)
                if isinstance(event, LibraryChanged):
                    self.right.keep_only(event.documents)
            case ConversationsChanged():
                self._titles = {one.id: one.title for one in event.conversations}
                self.left.set_conversations(event, self.controller.conversation_id)
                self._show_place()
            case ConversationLoaded():
                self.controller.loaded(event)
            case PassageLoaded():
                self.shell.show_right(True)  # first: where to scroll depends on its size
                self.right.show_passage(event.passage)
            case PageLoaded() | TextLoaded():
                self.right.document.take(event)
            case CacheState():
                self.right.set_kept(event)
            case IdleWorkDone():
                self.right.set_idle_work(event.sentences)
            case Notice():
                if not self.documents.take_notice(event):
                    self._show_problem(Problem(self._theme, event.message, event.hint, event.details))
            case _:
                pass

    def _engine_ready(self, model: ModelInfo) -> None:
        self._model = model
        self.controller.set_engine(Engine.READY)
        self.chat.model_line.set_model(model)
        self._drop_model_problem()
        if self._dialog is not None:
            self._dialog.show_model(model)
        wanted = self._wanted_model
        if wanted is not None and Path(model.path).resolve() == wanted.resolve():
            self._save(self._settings.with_(model=str(self._wanted_model)))
        self._wanted_model = None

    def _engine_failed(self, event: EngineFailed) -> None:
        self._wanted_model = None
        hint = event.hint
        if self._model is None:
            self.controller.set_engine(Engine.FAILED)
            self.chat.model_line.say("No model is loaded. Passages are still found and shown.")
        else:
            self.chat.model_line.set_model(self._model)
            hint = f"{event.hint} {self._model.name} stays in use.".strip()
        if self._dialog is not None:
            self._dialog.say(f"{event.message} {hint}".strip())
        self._drop_model_problem()
        self._model_problem = Problem(self._theme, event.message, hint, event.details)
        self._show_problem(self._model_problem, choose=True)

    def _drop_model_problem(self) -> None:
        """What was said about the last model is out of date."""
        if self._model_problem is not None:
            self._problems.removeWidget(self._model_problem)
            self._model_problem.hide()
            self._model_problem.deleteLater()
            self._model_problem = None

    def _refuse(self, error: SlipstreamError) -> None:
        self.controller.set_engine(Engine.ABSENT)
        self.chat.model_line.say("Slipstream could not start.")
        self._show_problem(Problem(self._theme, error.message, error.hint, error.details))

    def _show_problem(self, problem: Problem, *, choose: bool = False) -> None:
        """An error that belongs to no question stays above the page until it is dismissed."""
        dismiss = TextButton(self._theme, "Dismiss")
        dismiss.clicked.connect(problem.hide)  # deleted with the window, or with the next one
        problem.add_button(dismiss)
        if choose and not self._options.kiosk:
            button = TextButton(self._theme, "Choose a model…", kind="primary")
            button.clicked.connect(self.choose_model)
            problem.add_button(button)
        self._problems.addWidget(problem)

    # --- places ---------------------------------------------------------------------------------------

    def new_chat(self) -> None:
        self.pages.setCurrentWidget(self.chat)
        self.controller.new_chat()

    def start_over(self) -> None:
        self._hide_right()
        self.right.forget_document()
        self.controller.forget()

    def show_library(self) -> None:
        self.pages.setCurrentWidget(self.library)
        self.library.list.setFocus()
        self._show_place()

    def _open_conversation(self, conversation_id: int) -> None:
        self.pages.setCurrentWidget(self.chat)
        self.controller.open(conversation_id)

    def _type(self, text: str) -> None:
        """What is typed where nothing takes text goes into the question."""
        edit = self.chat.input.edit
        edit.setFocus()
        edit.insertPlainText(text)

    def _delete_conversation(self, info: ConversationInfo) -> None:
        words = f"“{info.title}”: its questions and answers go. Your documents stay."
        if confirm(self, "Delete this conversation?", words, "Delete"):
            self.controller.delete(info.id)

    def _show_place(self) -> None:
        library = self.pages.currentWidget() is self.library
        current = self.controller.conversation_id
        self.left.show_place(library=library, conversation_id=current)
        if not self._options.kiosk:
            fallback = self.chat.first_question or "New chat"
            title = fallback if current is None else self._titles.get(current, fallback)
            self.header.title.set_whole("" if library else title)

    def toggle_left(self) -> None:
        self.shell.show_left(not self.shell.left_shown)
        self.header.unfold.setVisible(not self.shell.left_shown)

    def _toggle_right(self) -> None:
        self.shell.show_right(not self.shell.right_shown)

    def _hide_right(self) -> None:
        inside = self.right.isAncestorOf(self.focusWidget() or self)
        self.shell.show_right(False)
        if inside:
            self.chat.input.edit.setFocus()

    def _show_chat(self) -> None:
        self.pages.setCurrentWidget(self.chat)
        self.shell.show_right(self.shell.right_shown and not self.shell.overlays)  # it would cover the turn
        self._show_place()

    def _show_inspector(self) -> None:
        self.right.show_tab(INSPECTOR)
        self.shell.show_right(True)

    def _escape(self) -> None:
        if self.controller.running is not None:
            self.controller.stop()
        elif self.shell.right_shown and self.shell.overlays:
            self._hide_right()

    def _warn(self, left_s: int) -> None:
        words = f"Starting over in {left_s} s. Touch the screen to stay." if left_s else ""
        self.chat.input.say(words)

    # --- settings and files ---------------------------------------------------------------------------

    def show_settings(self) -> None:
        self._dialog = SettingsDialog(self._theme, self._settings, self._model, self)
        self._dialog.changed.connect(self._change_settings)
        self._dialog.model_chosen.connect(self._use_model)
        self._dialog.forget.connect(self._bridge.forget_everything)
        self._dialog.exec()
        self._dialog.deleteLater()
        self._dialog = None

    def choose_model(self) -> None:
        path = choose_model(self)
        if path is not None:
            self._use_model(path)

    def _use_model(self, path: Path) -> None:
        self._wanted_model = path
        self.chat.model_line.say(f"{path.name} is loading…")
        if self._dialog is not None:
            self._dialog.say(f"{path.name} is loading…")
        self._bridge.use_model(path)

    def _change_settings(self, settings: Settings) -> None:
        before = self._settings
        self._save(settings)
        self._theme.set_settings(settings)
        if (before.find_by_meaning, before.embedder) != (settings.find_by_meaning, settings.embedder):
            self._bridge.find_by_meaning(settings)
        if before.reading != settings.reading:
            self._bridge.read_by(settings)

    def _save(self, settings: Settings) -> None:
        self._settings = self.controller.settings = settings
        try:
            save_settings(self._options.data_dir, settings)
        except SettingsError as error:
            self._show_problem(Problem(self._theme, error.message, error.hint, error.details))

    def add_paths(self, paths: list[Path]) -> None:
        self.documents.add(paths)
        self.show_library()

    # --- the window itself ----------------------------------------------------------------------------

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self.shell.overlays:
            self.shell.show_right(True)
        QTimer.singleShot(0, self.chat.input.edit, self.chat.input.edit.setFocus)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasUrls() and self._bridge.ready:
            event.acceptProposedAction()
            self.shell.show_drop(True)

    def dragLeaveEvent(self, _event: QDragLeaveEvent) -> None:
        self.shell.show_drop(False)

    def dropEvent(self, event: QDropEvent) -> None:
        self.shell.show_drop(False)
        paths = [Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()]
        if paths:
            event.acceptProposedAction()
            self.add_paths(paths)

    def force_close(self) -> None:
        self._may_close = True
        self.close()

    def closeEvent(self, event: QCloseEvent) -> None:
        if not self._may_close:
            event.ignore()
            return
        if self._options.kiosk:
            self.idle.stop()
            QApplication.instance().removeEventFilter(self.idle)  # type: ignore[union-attr]
        super().closeEvent(event)
