"""What a file is by its first bytes, whatever it is called."""

from core.errors import DocumentError, NeedsRecognition
from core.ingest import ocr
from core.ingest.archive import Archive

PDF, RTF, ZIP, OLE = b"%PDF-", b"{\\rtf", b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ZIPS = (ZIP, b"PK\x05\x06")
"""The second is an archive without members."""
_OPEN_DOCUMENT = "application/vnd.oasis.opendocument."
_PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*")
_BITMAP = b"BM"
"""Words begin with it as well."""
_ARCHIVES = (
    b"\x1f\x8b\x08",
    b"7z\xbc\xaf\x27\x1c",
    b"Rar!\x1a\x07",
    b"BZh",
    b"\xfd7zXZ\0",
    b"\x28\xb5\x2f\xfd",
)
PICTURES = frozenset((".png", ".jpg", ".jpeg", ".gif", ".tif", ".tiff", ".bmp", ".webp"))
"""Endings of pictures whose text can be recognized."""
_PHOTO_ENDINGS = frozenset((".heic", ".heif", ".avif"))
"""Of pictures that are not read."""
_PHOTO_BRANDS = frozenset((b"heic", b"heix", b"heim", b"heis", b"hevc", b"mif1", b"msf1", b"avif", b"avis"))
_PICTURE_ENDINGS = PICTURES | _PHOTO_ENDINGS
_ARCHIVE_ENDINGS = frozenset((".zip", ".gz", ".tgz", ".7z", ".rar", ".bz2", ".xz", ".tar", ".zst"))
_OLD_KINDS = (
    ("WordDocument", ".doc", "Word", ".docx"),
    ("PowerPoint Document", ".ppt", "PowerPoint", ".pptx"),
    ("Workbook", ".xls", "Excel", ".xlsx"),
    ("Book", ".xls", "Excel", ".xlsx"),
)


def kind_of_archive(archive: Archive) -> str:
    """``docx``, ``pptx``, ``xlsx``, ``epub`` or the media type of an OpenDocument file.

    Raises DocumentError for any other archive, with what to do about it.
    """
    if "mimetype" in archive:
        said = archive.read("mimetype").decode("ascii", "replace").strip()
        if said.startswith((_OPEN_DOCUMENT, "application/epub+zip")):
            return "epub" if said.startswith("application/epub") else said
    if "META-INF/container.xml" in archive:
        return "epub"
    if "[Content_Types].xml" in archive:
        main = next(iter(archive.related("", "officeDocument")), "")
        for folder, kind in (("word/", "docx"), ("ppt/", "pptx"), ("xl/", "xlsx")):
            if main.startswith(folder) and main.endswith(".xml"):
                return kind
        if main.startswith("xl/"):
            raise DocumentError(
                "Slipstream cannot read binary Excel files (.xlsb).",
                hint="Save the workbook as .xlsx and add that.",
            )
        raise DocumentError(
            "This Office file is damaged or of a kind that Slipstream cannot read.",
            hint="Open it in its program, save it as .docx, .pptx or .xlsx, and add that.",
        )
    if "content.xml" in archive and "META-INF/manifest.xml" in archive:
        return _OPEN_DOCUMENT + "text"
    if any(name.endswith(".iwa") for name in archive.names):
        raise DocumentError(
            "Slipstream cannot read Pages, Numbers or Keynote files.", hint="Export it as PDF and add that."
        )
    raise _archive_error()


def is_picture(data: bytes, suffix: str) -> bool:
    """Whether this is a picture, by its first bytes or, where they say nothing, by its ending."""
    if _is_readable_picture(data) or _is_photo(data):
        return True
    is_text = suffix in (".txt", ".md", ".csv", ".log", "")
    return suffix in _PICTURE_ENDINGS or (data.startswith(_BITMAP) and b"\0" in data[:64] and not is_text)


def is_unread_picture(data: bytes, suffix: str) -> bool:
    """Whether it is a picture of a kind whose text cannot be recognized either."""
    return _is_photo(data) or (suffix in _PHOTO_ENDINGS and not _is_readable_picture(data))


def _is_readable_picture(data: bytes) -> bool:
    return data.startswith(_PICTURES) or (data.startswith(b"RIFF") and data[8:12] == b"WEBP")


def _is_photo(data: bytes) -> bool:
    """Whether it is HEIC or AVIF by its first bytes."""
    return data[4:8] == b"ftyp" and data[8:12] in _PHOTO_BRANDS


def refuse_by_content(data: bytes, suffix: str) -> None:
    """Raise DocumentError for what is recognized and not read: old Office files, pictures, archives."""
    if data.startswith(OLE):
        _refuse_old(data, suffix)
    if is_unread_picture(data, suffix):
        raise DocumentError(
            "This is a picture of a kind that Slipstream cannot read (HEIC or AVIF).",
            hint="Save it as PNG or JPEG and add that.",
        )
    if is_picture(data, suffix):
        raise NeedsRecognition("This is a picture; Slipstream reads text only.", hint=ocr.offer())
    if data.startswith(_ARCHIVES[:3]) or suffix in _ARCHIVE_ENDINGS:
        raise _archive_error()


def is_encrypted_office(data: bytes) -> bool:
    """Whether it is a .docx, .pptx or .xlsx behind a password: an old container around the new file."""
    return data.startswith(OLE) and "EncryptedPackage".encode("utf-16-le") in data


def _archive_error() -> DocumentError:
    return DocumentError("This is an archive, not a document.", hint="Unpack it and add the files in it.")


def _refuse_old(data: bytes, suffix: str) -> None:
    def has(stream: str) -> bool:
        return stream.encode("utf-16-le") in data

    for stream, ending, program, better in _OLD_KINDS:
        if has(stream) or suffix == ending:
            raise DocumentError(
                f"The old {program} format ({ending}) is not supported.",
                hint=f"Open it in {program} or LibreOffice, save it as {better}, and add that.",
            )
    if has("__substg1.0_") or suffix == ".msg":
        raise DocumentError(
            "Outlook messages (.msg) are not supported.",
            hint="Save the message as .eml, or as text or PDF, and add that.",
        )
    raise DocumentError(
        "This file is of an old Office kind that is not supported.",
        hint="Open it in its program, save it as PDF, .docx or .xlsx, and add that.",
    )
