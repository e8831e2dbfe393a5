"""Python's cycle collector, kept to the GUI thread.

The collector runs on whichever thread allocates next. On the engine's or a reader's thread it would
destroy widgets there, which crashes Qt; so it is switched off and asked from a timer instead.
"""

import gc
from typing import Final

from PySide6.QtCore import QObject, QTimer

EVERY_MS: Final = 500
_OLDEST: Final = 2


class GuiGarbageCollector(QObject):
    """From its making until `stop`, cycles are collected on this thread alone, by Python's own thresholds."""

    def __init__(self) -> None:
        super().__init__()
        self._frozen = False
        self._timer = QTimer(self)
        self._timer.setInterval(EVERY_MS)
        self._timer.timeout.connect(self.collect)
        gc.disable()
        self._timer.start()

    def stop(self) -> None:
        self._timer.stop()
        gc.collect()
        gc.enable()

    def collect(self) -> None:
        """Collect the oldest generation whose threshold is passed."""
        due = [age for age, n in enumerate(gc.get_count()) if n > gc.get_threshold()[age]]
        if not due:
            return
        gc.collect(max(due))
        if max(due) == _OLDEST and not self._frozen:
            self._frozen = True
            gc.freeze()  # modules and code: looking at them again and again would stop the window
