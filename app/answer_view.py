"""Shows text that nobody vouches for: answers as Markdown, documents as plain text.

Nothing is ever loaded for it: no image, no style sheet, from no network and no file. Links say where
they lead and ask before they open.
"""

from PySide6.QtCore import QEvent, QSize, Qt, QUrl, Signal
from PySide6.QtGui import (
    QColor,
    QDesktopServices,
    QFontMetricsF,
    QHelpEvent,
    QImage,
    QMouseEvent,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QSizePolicy, QTextBrowser, QToolTip

from app.alignment import align, shown_span, utf16_offsets
from app.theme import READING_PX, Theme
from app.widgets import confirm
from app.wording import place_name
from core.types import Answer, Citation

_FEATURES = QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML
_CITE = "cite"
_LINE_HEIGHT = 1.55
"""Of the text's size: the same in every font, whatever line height it brings."""
_PARAGRAPH_GAP_PX = 6
_INDENT_PX = 22


class SafeBrowser(QTextBrowser):
    """A reading view that loads nothing and opens nothing by itself."""

    def __init__(self, theme: Theme, *, may_open_links: bool = True) -> None:
        super().__init__()
        self._theme = theme
        self._may_open_links = may_open_links
        self.setOpenLinks(False)
        self.setOpenExternalLinks(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setUndoRedoEnabled(False)
        self.document().setDocumentMargin(0)
        self.anchorClicked.connect(self.follow)

    def loadResource(self, kind: int, name: QUrl | str) -> QImage:  # noqa: ARG002
        """Nothing is loaded. A real image, since Qt would try the file system for an empty one."""
        nothing = QImage(1, 1, QImage.Format.Format_ARGB32)
        nothing.fill(Qt.GlobalColor.transparent)
        return nothing

    def follow(self, url: QUrl) -> None:
        """Open a web address after asking; refuse everything else."""
        if not self._may_open_links or url.scheme() not in ("http", "https"):
            return
        if confirm(self, "Open this address in your browser?", url.toDisplayString(), "Open"):
            QDesktopServices.openUrl(url)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ToolTip and isinstance(event, QHelpEvent):
            at = self.viewport().mapFromGlobal(event.globalPos())
            tip = self.cursorForPosition(at).charFormat().toolTip()
            QToolTip.showText(event.globalPos(), tip, self.viewport())
            return True
        return super().event(event)

    def set_line_height(self, paragraph_gap_px: int = _PARAGRAPH_GAP_PX, size: int = READING_PX) -> None:
        """Room between the lines, for reading, and between the paragraphs."""
        cursor = QTextCursor(self.document())
        cursor.select(QTextCursor.SelectionType.Document)
        spacing = QTextBlockFormat()
        height = self._theme.px(size) * _LINE_HEIGHT
        spacing.setLineHeight(height, QTextBlockFormat.LineHeightTypes.MinimumHeight.value)
        spacing.setBottomMargin(self._theme.px(paragraph_gap_px))
        cursor.mergeBlockFormat(spacing)
        self.document().setIndentWidth(self._theme.px(_INDENT_PX))


class AnswerView(SafeBrowser):
    """One answer, as tall as its text; the page around it scrolls."""

    cited = Signal(object)
    """A citation number was clicked; carries the `Citation`."""

    def __init__(self, theme: Theme, *, may_open_links: bool = True) -> None:
        super().__init__(theme, may_open_links=may_open_links)
        self._citations: dict[int, Citation] = {}
        self._markdown = ""
        self.setAccessibleName("Answer")
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setFont(theme.font(READING_PX))

    def show_text(self, markdown: str) -> None:
        """Show an answer that is still being written. A selection in it stays."""
        if markdown == self._markdown:
            return
        cursor = self.textCursor()
        anchor, position = cursor.anchor(), cursor.position()
        self._markdown = markdown
        self.document().setDefaultFont(self.font())
        self.document().setMarkdown(markdown, _FEATURES)
        self._drop_images()
        self.set_line_height()
        last = self.document().characterCount() - 1
        if anchor != position and max(anchor, position) <= last:
            cursor = self.textCursor()
            cursor.setPosition(anchor)
            cursor.setPosition(position, QTextCursor.MoveMode.KeepAnchor)
            self.setTextCursor(cursor)

    def show_answer(self, answer: Answer) -> None:
        """Show a finished answer with citation numbers, and unsupported sentences underlined."""
        self._markdown = ""
        self.show_text(answer.text)
        self._citations = {citation.number: citation for citation in answer.citations}
        shown = self.document().toPlainText()
        places = align(answer.text, shown)
        offsets = utf16_offsets(shown)
        for sentence in sorted(answer.sentences, key=lambda one: one.start, reverse=True):
            span = shown_span(places, sentence.start, sentence.end)
            if span is None:
                continue
            cursor = self._select(offsets[span[0]], offsets[span[1]])
            if sentence.citations:
                cursor.setPosition(offsets[span[1]])
                self._insert_numbers(cursor, sentence.citations)
            elif sentence.claims:
                cursor.mergeCharFormat(self._doubt(answer))

    def fit(self, width: int) -> None:
        """Take the height that the text needs at ``width``."""
        document = self.document()
        document.setTextWidth(width)
        self.setFixedHeight(int(document.size().height()) + 2)

    def sizeHint(self) -> QSize:
        return QSize(0, int(self.document().size().height()) + 2)

    def follow(self, url: QUrl) -> None:
        if url.scheme() == _CITE:
            citation = self._citations.get(int(url.path()))
            if citation is not None:
                self.cited.emit(citation)
            return
        super().follow(url)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        cursor = self.textCursor()
        if self.anchorAt(event.position().toPoint()) and cursor.charFormat().isAnchor():
            cursor.clearSelection()  # the ring around a clicked number is for keys
            self.setTextCursor(cursor)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # the page scrolls, not the answer

    def _select(self, start: int, end: int) -> QTextCursor:
        cursor = QTextCursor(self.document())
        cursor.setPosition(start)
        cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
        return cursor

    def _insert_numbers(self, cursor: QTextCursor, numbers: tuple[int, ...]) -> None:
        plain = QTextCharFormat(cursor.charFormat())
        for number in numbers:
            citation = self._citations.get(number)
            if citation is None:
                continue
            cursor.insertText("\u2009", plain)
            link = QTextCharFormat()
            link.setFont(self.font())
            link.setAnchor(True)
            link.setAnchorHref(f"{_CITE}:{number}")
            link.setVerticalAlignment(QTextCharFormat.VerticalAlignment.AlignSuperScript)
            link.setForeground(QColor(self._theme.tokens.accent))
            link.setFontUnderline(False)
            link.setToolTip(f"{place_name(citation.document, citation.page)}\n“{citation.quote}”")
            cursor.insertText(str(number), link)
        self._keep_height(cursor)

    def _keep_height(self, cursor: QTextCursor) -> None:
        """A superior number must not push its line away from the others."""
        spacing = cursor.blockFormat()
        if not spacing.headingLevel():
            height = max(spacing.lineHeight(), QFontMetricsF(self.font()).lineSpacing())
            spacing.setLineHeight(height, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
            cursor.setBlockFormat(spacing)

    def _doubt(self, answer: Answer) -> QTextCharFormat:
        why = "No passage that was read supports this sentence. Check it before you rely on it."
        if not answer.passages:
            why = "No passage was found for this question, so nothing supports this sentence."
        doubt = QTextCharFormat()
        doubt.setUnderlineStyle(QTextCharFormat.UnderlineStyle.DotLine)
        doubt.setUnderlineColor(QColor(self._theme.tokens.muted))
        doubt.setToolTip(why)
        return doubt

    def _drop_images(self) -> None:
        """Put words where the Markdown wants an image."""
        found: list[tuple[int, int, str]] = []
        block = self.document().begin()
        while block.isValid():
            iterator = block.begin()
            while not iterator.atEnd():
                piece = iterator.fragment()
                if piece.charFormat().isImageFormat():
                    words = piece.charFormat().stringProperty(QTextFormat.Property.ImageAltText.value)
                    found.append((piece.position(), piece.length(), words))
                iterator += 1  # how PySide moves it
            block = block.next()
        for start, length, alt in reversed(found):
            cursor = self._select(start, start + length)
            cursor.insertText(
                f"[image not loaded: {alt}]" if alt else "[image not loaded]", QTextCharFormat()
            )
