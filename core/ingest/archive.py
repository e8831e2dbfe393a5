"""Zip-based documents: members and their XML, with limits that hold before anything is unpacked."""

import zipfile
import zlib
from io import BytesIO
from posixpath import dirname, normpath
from xml.etree import ElementTree as ET

from core.errors import DocumentError

_MAX_MEMBERS = 20_000
_MAX_BYTES = 512 << 20
"""Of all members together, unpacked."""
_MAX_XML_BYTES = 128 << 20
"""Of one part that is read as a whole; it takes several times as much memory."""
_MAX_RATIO = 200
_FREE_BYTES = 32 << 20
"""So much may be packed as tightly as it likes: a small file of many equal rows is no bomb."""


class Archive:
    """The members of a zip file by name. Every error is a DocumentError."""

    def __init__(self, data: bytes) -> None:
        """Raises DocumentError for a damaged file and for one that would unpack to far too much."""
        try:
            self._zip = zipfile.ZipFile(BytesIO(data))
            members = self._zip.infolist()
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise damaged(error) from error
        unpacked = sum(member.file_size for member in members)
        if (
            len(members) > _MAX_MEMBERS
            or unpacked > _MAX_BYTES
            or (unpacked > _FREE_BYTES and unpacked > _MAX_RATIO * len(data))
        ):
            raise DocumentError(
                f"This file would unpack to {unpacked >> 20:,} MB in {len(members):,} parts; "
                "it was not opened.",
                hint="If you trust it, save it in its program as several smaller files and add those.",
            )
        self._left = _MAX_BYTES
        self.names = frozenset(member.filename for member in members)

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def read(self, name: str) -> bytes:
        """Never more than the size that was checked, whatever the packed data holds. Of all that is
        read, a part that others refer to many times counts each time.
        """
        try:
            self._left -= self._zip.getinfo(name).file_size
            if self._left < 0:
                raise _too_large()
            return self._zip.read(name)
        except RuntimeError as error:
            if "password" in str(error) or "encrypted" in str(error):
                raise DocumentError(
                    "This file is an archive that is protected by a password.",
                    hint="Open it in its program, save a copy without a password, and add the copy.",
                ) from error
            raise damaged(error) from error
        except (KeyError, zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
            raise damaged(error) from error

    def xml(self, name: str, *, doctype: bool = False) -> ET.Element:
        """The root of a member. ``doctype``: a document type without entities of its own is fine."""
        data = self.read(name)
        if len(data) > _MAX_XML_BYTES:
            raise _too_large()
        return parse_xml(data, doctype=doctype)

    def relations(self, part: str) -> dict[str, tuple[str, str]]:
        """What a part of an Office file refers to: identifier to (last word of its type, member)."""
        folder, _, name = part.rpartition("/")
        index = f"{folder}/_rels/{name}.rels" if folder else f"_rels/{name}.rels"
        found: dict[str, tuple[str, str]] = {}
        if index not in self:
            return found
        for relation in self.xml(index):
            target = relation.get("Target", "")
            if relation.get("TargetMode") == "External" or not target:
                continue  # nothing outside of the file is ever opened
            kind = relation.get("Type", "").rpartition("/")[2]
            found[relation.get("Id", "")] = (kind, resolved(part, target))
        return found

    def related(self, part: str, kind: str) -> list[str]:
        """The members of one kind that a part refers to and that are there."""
        return [member for word, member in self.relations(part).values() if word == kind and member in self]


def resolved(part: str, target: str) -> str:
    """The member that ``target`` means in ``part``."""
    return target.lstrip("/") if target.startswith("/") else normpath(f"{dirname(part)}/{target}").lstrip("/")


def parse_xml(data: bytes, *, doctype: bool = False) -> ET.Element:
    """The root element. Raises DocumentError for damaged XML and for any that declares entities."""
    refuse_entities(data, doctype=doctype)
    try:
        return ET.fromstring(data)  # noqa: S314 - entities were refused, external ones are never opened
    except (ET.ParseError, ValueError, LookupError) as error:
        raise damaged(error) from error


def refuse_entities(data: bytes, *, doctype: bool = False) -> None:
    """Raise DocumentError for XML that declares entities or, unless ``doctype``, a document type."""
    plain = data.replace(b"\0", b"") if b"\0" in data[:64] else data
    if b"<!ENTITY" in plain or (b"<!DOCTYPE" in plain and not doctype):
        raise DocumentError(
            "This file declares XML entities, which documents have no use for; it was not read.",
            hint="If you trust it, open it in its program and save it again.",
        )


def _too_large() -> DocumentError:
    return DocumentError(
        "This file holds more text than Slipstream reads from one file.",
        hint="Save it as several smaller files and add those.",
    )


def damaged(error: Exception | None = None) -> DocumentError:
    """The refusal of a file that is not whole."""
    return DocumentError(
        "This file is damaged.",
        hint="Open it in its program and save it again, or get another copy.",
        details=repr(error) if error else "",
    )


def local(element: ET.Element) -> str:
    """Name without its namespace: the strict and the usual kind of Office files differ only there."""
    return element.tag.rpartition("}")[2]


def attribute(element: ET.Element, name: str) -> str | None:
    """Value of an attribute in whatever namespace, None if it is not there."""
    for key, value in element.attrib.items():
        if key.rpartition("}")[2] == name:
            return value
    return None


def child(element: ET.Element, *path: str) -> ET.Element | None:
    """The first child of the first name, in it the first of the second, and so on."""
    found: ET.Element | None = element
    for name in path:
        found = next((each for each in found if local(each) == name), None) if found is not None else None
    return found
