from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QWidget

from app.password_dialog import PasswordDialog
from core.types import DocumentStatus


@pytest.fixture
def document(parts):
    return parts.document(4, "bank.pdf", DocumentStatus.NEEDS_PASSWORD, "It is protected by a password.")


@pytest.fixture
def dialog(qtbot, theme, document):
    parent = QWidget()
    qtbot.addWidget(parent)
    made = PasswordDialog(theme, document, parent)
    made.open()
    yield made
    parent.hide()  # it owns the dialog: kept until here


@pytest.fixture
def entered(dialog):
    heard = []
    dialog.entered.connect(lambda *values: heard.append(values))
    return heard


def test_a_password_is_hidden_tried_once_and_refused_in_place(dialog, entered, qtbot):
    assert dialog.edit.echoMode() is QLineEdit.EchoMode.Password
    assert not dialog.open_button.isEnabled()
    qtbot.keyClicks(dialog.edit, "wrong")
    qtbot.keyClick(dialog.edit, Qt.Key.Key_Return)
    qtbot.keyClick(dialog.edit, Qt.Key.Key_Return)
    assert (entered, dialog.trying, dialog.open_button.text()) == ([(4, "wrong")], True, "Opening…")
    dialog.refuse("This password does not fit.")
    assert (dialog.message.text(), dialog.message.isVisible()) == ("This password does not fit.", True)
    assert dialog.edit.selectedText() == "wrong"
    qtbot.keyClicks(dialog.edit, "right")
    assert not dialog.message.isVisible()
    dialog.open_button.click()
    assert entered[1] == (4, "right")
    assert dialog.isVisible()


def test_it_ends_when_the_document_is_open_or_gone(dialog, document):
    dialog.take(document)
    assert dialog.isVisible()
    dialog.take(replace(document, status=DocumentStatus.READY))
    assert not dialog.isVisible()
    dialog.open()
    dialog.take(None)
    assert not dialog.isVisible()


def test_the_password_is_shown_if_the_user_wants_to_see_it(dialog):
    dialog.shown.setChecked(True)
    assert dialog.edit.echoMode() is QLineEdit.EchoMode.Normal
