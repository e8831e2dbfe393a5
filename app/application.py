"""Opens the window and runs until it is closed. The window comes first, the engine after it."""

import contextlib
import signal
import socket
import sys
import traceback
from collections.abc import Iterator
from types import TracebackType
from typing import Final

from PySide6.QtCore import QObject, QSocketNotifier
from PySide6.QtWidgets import QApplication

from app.bridge import Factory, ServiceBridge, import_and_build
from app.garbage import GuiGarbageCollector
from app.icons import app_icon
from app.main_window import MainWindow
from app.theme import Theme
from core.config import WindowOptions
from core.types import Notice

INTERRUPTED: Final = 130
"""Exit status after Ctrl-C, as shells have it."""
SWITCH_INTERVAL_S: Final = 0.001
"""A thread that computes in Python lets the window go on after so long (Python's own value: 5 ms)."""


class CtrlC(QObject):
    """Turns SIGINT into a call on the GUI thread: Python's own handlers wait while Qt sleeps."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__()
        self._window = window
        self.happened = False
        self._read, self._write = socket.socketpair()
        self._read.setblocking(False)
        self._write.setblocking(False)
        self._notifier = QSocketNotifier(self._read.fileno(), QSocketNotifier.Type.Read)
        self._notifier.activated.connect(self._close_window)

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        old_handler = signal.signal(signal.SIGINT, lambda *_: None)
        old_fd = signal.set_wakeup_fd(self._write.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(old_fd)
            signal.signal(signal.SIGINT, old_handler)
            self._notifier.setEnabled(False)
            self._read.close()
            self._write.close()

    def _close_window(self) -> None:
        if signal.SIGINT in self._read.recv(64):
            self.happened = True
            self._window.force_close()


def show_bugs(bridge: ServiceBridge) -> None:
    """An exception that nobody caught is said in the window as well as in the terminal."""

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        sys.__excepthook__(kind, error, trace)
        details = "".join(traceback.format_exception(kind, error, trace))
        hint = "This is a mistake in the program. Nothing that was saved is lost."
        bridge.post(Notice("Something went wrong in the window.", hint, details, is_bug=True))

    sys.excepthook = hook


def open_window(options: WindowOptions, factory: Factory = import_and_build) -> int:
    """Show the window, start the service on its own thread, and return the exit status at the end."""
    app = QApplication.instance() or QApplication(sys.argv[:1])
    if not isinstance(app, QApplication):
        raise TypeError("a QCoreApplication without windows is already running")
    app.setApplicationName("Slipstream")
    app.setDesktopFileName("slipstream")
    app.setWindowIcon(app_icon())
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    garbage = GuiGarbageCollector()
    theme = Theme(options.settings, kiosk=options.kiosk)
    theme.apply()
    bridge = ServiceBridge(options.data_dir, options.settings, factory)
    window = MainWindow(options, theme, bridge)
    show_bugs(bridge)
    if options.kiosk:
        window.showFullScreen()
    else:
        window.show()
    ctrl_c = CtrlC(window)
    with ctrl_c.installed():
        bridge.start()
        status = app.exec()
    window.hide()
    bridge.close()
    garbage.stop()
    sys.excepthook = sys.__excepthook__
    return INTERRUPTED if ctrl_c.happened else status
