import os
import signal
import sys
import threading

import pytest
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from app import application
from core.config import WindowOptions


@pytest.fixture
def switch_interval():
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("kiosk", [False, True])
def test_the_window_comes_before_the_service_and_ctrl_c_ends_both(
    qapp, tmp_path, parts, switch_interval, kiosk
):
    seen = []

    def factory(*arguments):
        seen.append(any(w.isVisible() for w in QApplication.topLevelWidgets()))
        service = parts.FakeService(*arguments)
        seen.append(service)
        return service

    QTimer.singleShot(300, lambda: os.kill(os.getpid(), signal.SIGINT))
    status = application.open_window(WindowOptions(tmp_path, parts.Settings(), kiosk), factory)
    assert status == application.INTERRUPTED
    assert seen[0]
    assert seen[1].calls[-1] == ("close",)
    assert not any(thread.name == "start-up" for thread in threading.enumerate())
    assert sys.excepthook is sys.__excepthook__


def test_a_bug_is_said_in_the_window(opened, capsys):
    application.show_bugs(opened.bridge)
    try:
        raise_it()
    except ZeroDivisionError as error:
        sys.excepthook(type(error), error, error.__traceback__)
    finally:
        sys.excepthook = sys.__excepthook__
    opened.settle()
    problem = opened.window._problems.itemAt(0).widget()
    assert "ZeroDivisionError" in problem._details.text()
    assert "ZeroDivisionError" in capsys.readouterr().err


def raise_it():
    return 1 // 0
