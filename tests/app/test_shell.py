import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QApplication, QWidget

from app.shell import RIGHT_PX, Shell


@pytest.fixture
def shell(qtbot, theme):
    made = Shell(theme, QWidget(), QWidget(), QWidget())
    qtbot.addWidget(made)
    made.resize(1280, 800)
    made.show()
    made.show_right(True)
    return made


def test_what_needs_room_gets_half_of_the_window_at_most(shell):
    assert shell.right.width() == RIGHT_PX
    shell.show_wide(True)
    assert shell.right.width() == 640
    assert shell.centre.geometry().right() < shell.right.x()
    shell.resize(1110, 800)
    assert shell.centre.width() >= 380
    shell.show_wide(False)
    assert shell.right.width() == RIGHT_PX


def test_over_the_centre_of_a_narrow_window_it_leaves_a_way_back(shell):
    shell.resize(900, 600)
    shell.show_right(True)
    shell.show_wide(True)
    assert RIGHT_PX < shell.right.width() <= 820


def drag(grip, x):
    """Move the mouse, its left button held, to ``x`` in the shell."""
    at = QPointF(x - grip.x(), 10)
    event = QMouseEvent(
        QEvent.Type.MouseMove,
        at,
        grip.mapToGlobal(at),
        Qt.MouseButton.NoButton,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    QApplication.sendEvent(grip, event)


def test_the_edge_can_be_dragged(shell):
    shell.show_wide(True)
    drag(shell._grip, 780)
    assert shell.right.width() == 500
    drag(shell._grip, 10)
    assert shell.right.width() == 640
    drag(shell._grip, 1260)
    assert shell.right.width() == RIGHT_PX
    assert shell._grip.geometry().contains(QPoint(shell.right.x(), 10))
    shell.show_wide(False)
    drag(shell._grip, 780)  # dragging alone makes room
    assert shell.right.width() == 500


def test_the_edge_is_there_only_with_the_pane(shell):
    assert shell._grip.isVisible()
    shell.show_right(False)
    assert not shell._grip.isVisible()
