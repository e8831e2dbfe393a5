"""What differs where the window stands in public: idle reset, and no way out by accident."""

from collections.abc import Callable
from typing import Final

from PySide6.QtCore import QEvent, QObject, QTimer, Signal

WARN_S: Final = 10
"""So long before the reset the screen says that it is coming."""

_INPUT = frozenset(
    {
        QEvent.Type.KeyPress,
        QEvent.Type.MouseButtonPress,
        QEvent.Type.MouseMove,
        QEvent.Type.Wheel,
        QEvent.Type.TouchBegin,
        QEvent.Type.TouchUpdate,
        QEvent.Type.TabletPress,
        QEvent.Type.InputMethod,
    }
)


class IdleWatch(QObject):
    """Install it as the application's event filter. It counts seconds without input."""

    warned = Signal(int)
    """Carries the seconds left; 0 takes the warning back."""
    idle = Signal()

    def __init__(self, idle_s: int, is_busy: Callable[[], bool], is_clean: Callable[[], bool]) -> None:
        """``is_busy``: an answer runs and is read along; ``is_clean``: there is nothing to clear."""
        super().__init__()
        self._idle_s = idle_s
        self._is_busy = is_busy
        self._is_clean = is_clean
        self._passed_s = 0
        self._timer = QTimer(self)
        self._timer.setInterval(1000)
        self._timer.timeout.connect(self.tick)

    def start(self) -> None:
        self._timer.start()

    def stop(self) -> None:
        self._timer.stop()

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        if event.type() in _INPUT:
            self.touch()
        return False

    def touch(self) -> None:
        """Somebody is there."""
        if self._passed_s >= self._idle_s - WARN_S:
            self.warned.emit(0)
        self._passed_s = 0

    def tick(self) -> None:
        """One second passed."""
        if self._is_busy() or self._is_clean():
            self._passed_s = 0
            return
        self._passed_s += 1
        left = self._idle_s - self._passed_s
        if left <= 0:
            self._passed_s = 0
            self.warned.emit(0)
            self.idle.emit()
        elif left <= WARN_S:
            self.warned.emit(left)
