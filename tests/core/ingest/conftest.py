import threading

import pytest

from core.ingest.library import ingest
from core.store.database import open_database


@pytest.fixture
def db(tmp_path):
    with open_database(tmp_path / ".data") as database:
        yield database


@pytest.fixture
def read(db):
    """Reads paths into the library; the summary."""

    def run(*paths, cancel=None, progress=lambda _event: None):
        return ingest(paths, db, cancel=cancel or threading.Event(), progress=progress)

    return run


@pytest.fixture
def make_pdf():
    """Makes a PDF: a list of pages, each a list of (x, y, text); None stands for an empty page."""

    def make(pages):
        kids = " ".join(f"{4 + 2 * index} 0 R" for index in range(len(pages)))
        objects = [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        ]
        for index, page in enumerate(pages):
            lines = "".join(f"BT /F 10 Tf {x} {y} Td ({text}) Tj ET\n" for x, y, text in page or [])
            objects.append(
                b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Resources << /Font << /F 3 0 R >> >>"
                + f" /Contents {5 + 2 * index} 0 R >>".encode()
            )
            stream = lines.encode()
            objects.append(f"<< /Length {len(stream)} >>\nstream\n".encode() + stream + b"endstream")
        out = bytearray(b"%PDF-1.4\n")
        offsets = []
        for number, body in enumerate(objects, start=1):
            offsets.append(len(out))
            out += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
        xref = len(out)
        out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
        out += b"".join(f"{offset:010d} 00000 n \n".encode() for offset in offsets)
        out += f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{xref}\n%%EOF".encode()
        return bytes(out)

    return make
