"""Which documents hold pictures of text, and whether that text can be recognized on this computer."""

from pathlib import Path
from typing import Final

from core.types import DocumentInfo, DocumentStatus

_PICTURES: Final = (".png", ".jpg", ".jpeg", ".gif", ".tif", ".tiff", ".bmp", ".webp")
HOW_TO_GET_IT: Final = "Text in pictures can be recognized with the extra “ocr”, which is not installed here."


def is_available() -> bool:
    """Whether text can be recognized here."""
    from core.ingest import ocr

    return ocr.is_available()


def has_unread_pictures(document: DocumentInfo) -> bool:
    """Whether a document is a picture that was not read, or has pages without text: scans, most often."""
    suffix = Path(document.title).suffix.lower()
    if "recognized" in document.note:
        return False  # it was tried
    if suffix in _PICTURES:
        return document.status is DocumentStatus.FAILED
    noted = document.status in (DocumentStatus.FAILED, DocumentStatus.READY_WITH_NOTE)
    return suffix == ".pdf" and noted and " no text" in document.note
