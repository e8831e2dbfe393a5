"""Which documents hold pictures of text, and whether that text can be recognized on this computer."""

from pathlib import Path

from core.types import DocumentInfo, DocumentStatus


def is_available() -> bool:
    """Whether text can be recognized here."""
    from core.ingest import ocr

    return ocr.is_available()


def offer() -> str:
    """How text can be recognized here, or what is missing for it."""
    from core.ingest import ocr

    return ocr.offer()


def has_unread_pictures(document: DocumentInfo) -> bool:
    """Whether a document is a picture that was not read, or has pages without text: scans, most often."""
    from core.ingest.kinds import PICTURES

    suffix = Path(document.title).suffix.lower()
    if "recognized" in document.note:
        return False  # it was tried
    if suffix in PICTURES:
        return document.status is DocumentStatus.FAILED
    noted = document.status in (DocumentStatus.FAILED, DocumentStatus.READY_WITH_NOTE)
    return suffix == ".pdf" and noted and " no text" in document.note
