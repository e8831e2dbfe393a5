import contextlib
import textwrap
import threading
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from core.errors import DocumentError
from core.ingest.library import ingest
from core.ingest.readers import extract
from core.store.database import open_database


@pytest.fixture
def db(tmp_path):
    with open_database(tmp_path / ".data") as database:
        yield database


@pytest.fixture
def read(db):
    """Reads paths into the library; the summary."""

    def run(*paths, cancel=None, progress=lambda _event: None, **options):
        return ingest(paths, db, cancel=cancel or threading.Event(), progress=progress, **options)

    return run


@pytest.fixture
def in_child(tmp_path, monkeypatch):
    """Makes a module of this source that child processes can import; its name."""

    def make(source):
        folder = tmp_path / ".modules"
        folder.mkdir(exist_ok=True)
        name = f"functions_{len(list(folder.glob('*.py')))}"
        (folder / f"{name}.py").write_text(textwrap.dedent(source))
        monkeypatch.setenv("PYTHONPATH", str(folder))
        return name

    return make


def zipped(members: dict[str, str | bytes], compression=zipfile.ZIP_DEFLATED) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def relations(**targets: str) -> str:
    """A .rels part: kind=target; the identifier of each is its kind."""
    rows = "".join(
        f'<Relationship Id="{kind}" Type="http://x/relationships/{kind.rstrip("0123456789")}" Target="{target}"/>'
        for kind, target in targets.items()
    )
    return f'<Relationships xmlns="http://x/relationships">{rows}</Relationships>'


@pytest.fixture
def make_zip():
    return zipped


@pytest.fixture
def make_docx():
    """A Word document of the XML in its body, and of other parts by name."""

    def make(body, styles="", footnotes="", **members):
        word = 'xmlns:w="http://w" xmlns:wps="http://wps" xmlns:mc="http://mc"'
        return zipped(
            {
                "[Content_Types].xml": "<Types/>",
                "_rels/.rels": relations(officeDocument="word/document.xml"),
                "word/_rels/document.xml.rels": relations(styles="styles.xml", footnotes="footnotes.xml"),
                "word/document.xml": f"<w:document {word}><w:body>{body}</w:body></w:document>",
                "word/styles.xml": f"<w:styles {word}>{styles}</w:styles>",
                "word/footnotes.xml": f"<w:footnotes {word}>{footnotes}</w:footnotes>",
                **members,
            }
        )

    return make


@pytest.fixture
def make_pptx():
    """A presentation of the XML in each slide's shape tree, and of the notes of some by number."""

    def make(*slides, notes=None):
        space = 'xmlns:p="http://p" xmlns:a="http://a" xmlns:r="http://r"'
        numbers = range(1, len(slides) + 1)
        ids = "".join(f'<p:sldId id="{255 + n}" r:id="slide{n}"/>' for n in numbers)
        members = {
            "[Content_Types].xml": "<Types/>",
            "_rels/.rels": relations(officeDocument="ppt/presentation.xml"),
            "ppt/presentation.xml": f"<p:presentation {space}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
            "ppt/_rels/presentation.xml.rels": relations(
                **{f"slide{n}": f"slides/s{n}.xml" for n in numbers}
            ),
        }
        for n, slide in enumerate(slides, start=1):
            tree = f"<p:sld {space}><p:cSld><p:spTree>{{}}</p:spTree></p:cSld></p:sld>"
            members[f"ppt/slides/s{n}.xml"] = tree.format(slide)
            if notes and n in notes:
                members[f"ppt/slides/_rels/s{n}.xml.rels"] = relations(notesSlide=f"../notes{n}.xml")
                members[f"ppt/notes{n}.xml"] = tree.format(notes[n])
        return zipped(members)

    return make


@pytest.fixture
def make_xlsx():
    """A workbook: sheet names, and of each the XML of its rows."""

    def make(sheets, **members):
        space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
        office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
        kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
        listed = "".join(
            f'<sheet name="{name}" sheetId="{n}" r:id="worksheet{n}"/>'
            for n, name in enumerate(sheets, start=1)
        )
        relation = "".join(
            f'<Relationship Id="worksheet{n}" Type="{office}/worksheet" Target="worksheets/s{n}.xml"/>'
            for n in range(1, len(sheets) + 1)
        )
        package = "http://schemas.openxmlformats.org/package/2006/relationships"
        parts = {
            "[Content_Types].xml": f'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            f'<Override PartName="/xl/workbook.xml" ContentType="{kind}.sheet.main+xml"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{package}"><Relationship Id="a" Type="{office}/officeDocument"'
            ' Target="xl/workbook.xml"/></Relationships>',
            "xl/workbook.xml": f'<workbook {space} xmlns:r="{office}"><sheets>{listed}</sheets></workbook>',
            "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}">{relation}'
            f'<Relationship Id="st" Type="{office}/styles" Target="styles.xml"/></Relationships>',
            "xl/styles.xml": f'<styleSheet {space}><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>',
        }
        for n, rows in enumerate(sheets.values(), start=1):
            parts[f"xl/worksheets/s{n}.xml"] = f"<worksheet {space}><sheetData>{rows}</sheetData></worksheet>"
        return zipped({**parts, **members})

    return make


@pytest.fixture
def make_odt():
    """An OpenDocument file of the XML in its body."""

    def make(body, kind="text", **members):
        space = 'xmlns:office="http://o" xmlns:text="http://t" xmlns:table="http://ta" xmlns:draw="http://d"'
        return zipped(
            {
                "mimetype": f"application/vnd.oasis.opendocument.{kind}",
                "content.xml": f"<office:document-content {space}><office:body>{body}</office:body>"
                "</office:document-content>",
                **members,
            }
        )

    return make


@pytest.fixture
def make_epub():
    """A book: the spine's members in order, and the HTML of each member by name."""

    def make(spine, members, package="OEBPS/content.opf", title="The Book"):
        items = "".join(
            f'<item id="i{n}" href="{name}" media-type="application/xhtml+xml"/>'
            for n, name in enumerate(members)
        )
        order = "".join(f'<itemref idref="i{list(members).index(name)}"/>' for name in spine)
        folder = package.rpartition("/")[0]
        return zipped(
            {
                "mimetype": "application/epub+zip",
                "META-INF/container.xml": f'<container><rootfiles><rootfile full-path="{package}"/></rootfiles></container>',
                package: '<!DOCTYPE package PUBLIC "x" "y"><package xmlns:dc="http://dc"><metadata>'
                f"<dc:title>{title}</dc:title><dc:creator>Ada</dc:creator></metadata>"
                f"<manifest>{items}</manifest><spine>{order}</spine></package>",
                **{f"{folder}/{name}" if folder else name: data for name, data in members.items()},
            }
        )

    return make


@pytest.fixture
def survives():
    """Reads a file whole and cut at 20 places: text or a DocumentError, nothing else."""

    def check(name, data):
        read = [data[: len(data) * cut // 20] for cut in range(21)]
        for part in read:
            with contextlib.suppress(DocumentError):
                extract(Path(name), part)

    return check


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


@pytest.fixture
def drawn_text():
    """Makes an image of texts at (x, y); skips the test where text recognition is not installed."""
    for name in ("rapidocr", "onnxruntime"):
        pytest.importorskip(name)
    from PIL import Image, ImageDraw, ImageFont

    def make(*texts, size=(900, 420), ink="black", paper="white", mode="RGB"):
        image = Image.new(mode, size, paper)
        draw = ImageDraw.Draw(image)
        font = ImageFont.load_default(size=28)
        for x, y, text in texts:
            draw.text((x, y), text, font=font, fill=ink)
        return image

    return make


@pytest.fixture
def make_scan(drawn_text, make_pdf):
    """Makes a PDF of pages: a text is a scan of it, None an empty page, a list what ``make_pdf`` takes."""
    import pypdfium2

    def make(*pages):
        whole = pypdfium2.PdfDocument.new()
        for page in pages:
            if isinstance(page, str):
                out = BytesIO()
                drawn_text((60, 60, page)).save(out, "PDF", resolution=100)
                data = out.getvalue()
            else:
                data = make_pdf([page])
            part = pypdfium2.PdfDocument(data)
            whole.import_pages(part)
            part.close()
        out = BytesIO()
        whole.save(out)
        whole.close()
        return out.getvalue()

    return make
