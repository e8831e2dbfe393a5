import sys

import pypdfium2
import pytest

from core.errors import Cancelled, DocumentError, NeedsRecognition, NoText
from core.ingest import ocr
from core.ingest.extracted import ReadOptions
from core.ingest.pdf import read_pdf
from core.ingest.readers import OCR_S
from core.ingest.scans import rendered

OCR = ReadOptions(ocr=True)


def read(data, options=OCR):
    return read_pdf(data, lambda: False, options)


def test_scanned_pages_are_recognized_and_written_ones_kept(make_scan):
    found = read(make_scan([(50, 700, "Written here.")], "Scanned there.", None))
    assert found.text == "Written here.\n\nScanned there.\n\n"
    assert [found.text[start:][:7] for start in found.page_starts] == ["Written", "Scanned", ""]
    assert found.note == (
        "The text of 1 of 3 pages was recognized; check figures against the original."
        " No text was recognized in 1 page."
    )


def test_recognition_is_offered_not_done(make_scan):
    scan = make_scan("Scanned.", [(50, 700, "Written.")])
    found = read(scan, ReadOptions())
    assert found.text.strip() == "Written."
    assert found.note == f"1 of 2 pages holds no text. {ocr.offer()}"
    with pytest.raises(NeedsRecognition, match=rf"1 page and no text.*{ocr.ACTION}"):
        read(make_scan("Scanned."), ReadOptions())


def test_a_scan_of_nothing(make_scan):
    with pytest.raises(NoText, match="2 pages; no text was recognized in them"):
        read(make_scan(None, None))


def test_recognition_stops_between_pages(make_scan):
    scan = make_scan("One.", "Two.", "Three.")
    asked = []

    def stop():
        asked.append(1)
        return len(asked) > 4

    with pytest.raises(Cancelled):
        read_pdf(scan, stop, OCR)
    assert len(asked) == 5


def test_without_the_extra_nothing_is_needed(make_pdf, monkeypatch):
    monkeypatch.setitem(sys.modules, "rapidocr", None)
    found = read(make_pdf([[(50, 700, "Text.")], None]))
    assert found.text.strip() == "Text."
    assert found.note.startswith("1 of 2 pages holds no text. To have it read, install")
    with pytest.raises(NeedsRecognition, match="extra “ocr”"):
        read(make_pdf([None]))


def with_image(width, height, *, box="0 0 600 800"):
    """A PDF of one page with an image that claims a size."""
    stream = b"q 600 0 0 800 0 0 cm /I Do Q"
    image = (
        f"<< /Type /XObject /Subtype /Image /Width {width} /Height {height} /BitsPerComponent 1"
        " /ColorSpace /DeviceGray /Length 4 >>\nstream\n"
    )
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox [{box}] /Resources << /XObject << /I 4 0 R >> >>"
        " /Contents 5 0 R >>".encode(),
        image.encode() + b"\0\0\0\0\nendstream",
        f"<< /Length {len(stream)} >>\nstream\n".encode() + stream + b"\nendstream",
    ]
    out = b"%PDF-1.4\n"
    for number, body in enumerate(objects, start=1):
        out += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    return out + b"trailer << /Size 6 /Root 1 0 R >>\n"


def test_an_image_that_would_fill_the_memory_is_not_decoded():
    page = pypdfium2.PdfDocument(with_image(100_000, 100_000))[0]
    with pytest.raises(DocumentError, match="100,000 × 100,000 pixels is too large"):
        rendered(page)


def test_a_problem_with_a_page_is_told(drawn_text):
    with pytest.raises(NoText, match="Page 1: An image of 100,000"):
        read(with_image(100_000, 100_000))


@pytest.mark.parametrize("box", ["0 0 600 800", "0 0 14400 14400", "0 0 1 14000"])
def test_pages_of_any_size_are_drawn_within_bounds(box):
    pixels = rendered(pypdfium2.PdfDocument(with_image(8, 4, box=box))[0])
    assert pixels.shape[0] * pixels.shape[1] <= 8_100_000
    assert pixels.shape[2] == 3
    assert min(pixels.shape) >= 1


def test_pages_that_are_not_reached_in_time_are_left_and_named(make_scan, monkeypatch):
    scan = make_scan("First page.", "Second page.", "Third page.")
    real = ocr.recognize
    clock = [0.0]

    def slow(pixels):
        clock[0] += ocr.BUDGET_S * 0.6
        return real(pixels)

    monkeypatch.setattr(ocr, "recognize", slow)
    monkeypatch.setattr("core.ingest.pdf.time.monotonic", lambda: clock[0])
    found = read(scan)
    assert found.text.strip() == "First page.\n\nSecond page."
    assert found.note == (
        "The text of 2 of 3 pages was recognized; check figures against the original."
        " 1 page was left after 50 minutes, without being recognized: save the rest as a file of its own and"
        " add that."
    )
    assert ocr.BUDGET_S < OCR_S
    monkeypatch.setattr(ocr, "recognize", lambda pixels: slow(pixels) and "")
    with pytest.raises(NoText, match="1 page was left after 50 minutes"):
        read(scan)
