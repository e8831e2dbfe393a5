import contextlib
import random
import sys
from io import BytesIO
from pathlib import Path

import pytest

from core.errors import Cancelled, DocumentError, NeedsRecognition, NoText
from core.ingest import ocr
from core.ingest.extracted import ReadOptions
from core.ingest.picture import read_picture
from core.ingest.readers import extract


def encoded(image, kind, **options):
    out = BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def read(data):
    return read_picture(data, lambda: False)


WORDS = "Rain is expected"


@pytest.fixture
def words(drawn_text):
    return drawn_text((60, 60, WORDS), size=(500, 160))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "BMP", "WEBP", "GIF"])
def test_kinds_of_pictures(words, kind):
    found = extract(Path(f"a.{kind}"), encoded(words, kind), options=ReadOptions(ocr=True))
    assert found.text == WORDS
    assert found.page_starts == ()
    assert "check figures against the original" in found.note


@pytest.mark.parametrize("mode", ["L", "1", "P", "CMYK", "I;16", "F"])
def test_kinds_of_pixels(words, mode):
    from PIL import Image

    if mode == "I;16":
        image = Image.new("I;16", words.size)
        image.putdata([value * 200 for value in words.convert("L").tobytes()])
    else:
        image = words.convert("L").convert(mode) if mode in ("1", "F") else words.convert(mode)
    assert read(encoded(image, "TIFF")).text == WORDS


def test_pages_of_a_fax(drawn_text):
    first, second = (drawn_text((60, 60, text), size=(500, 160)) for text in ("Page of rain", "Page of snow"))
    data = encoded(first, "TIFF", save_all=True, append_images=[second])
    found = read(data)
    assert found.text == "Page of rain\n\nPage of snow"
    assert [found.text[start:][:12] for start in found.page_starts] == ["Page of rain", "Page of snow"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ocr, "BUDGET_S", 0.0)
        patch.setattr(ocr, "recognize", lambda _pixels: "Page of rain")
        times = iter([0.0, 0.0, 1.0])
        patch.setattr("core.ingest.picture.time.monotonic", lambda: next(times))
        cut = read(data)
    assert cut.text == "Page of rain"
    assert "1 page was left" in cut.note
    with pytest.raises(Cancelled):
        read_picture(data, lambda: True)


def test_a_photograph_taken_sideways(words):
    from PIL import Image

    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees to see it upright
    assert read(encoded(words.rotate(90, expand=True), "JPEG", exif=exif)).text == WORDS


def test_letters_on_nothing(drawn_text):
    for ink in ("black", "white"):
        image = drawn_text((60, 60, WORDS), size=(500, 160), ink=ink, paper=(0, 0, 0, 0), mode="RGBA")
        assert read(encoded(image, "PNG")).text == WORDS


def test_an_animation_is_read_as_its_first_picture(words, drawn_text):
    data = encoded(words, "GIF", save_all=True, append_images=[drawn_text(size=(500, 160))], duration=50)
    assert read(data).text == WORDS


def test_pictures_without_text_and_too_large_ones(drawn_text):
    from PIL import Image

    with pytest.raises(NoText, match=r"No text was recognized.*Latin, Chinese and Japanese"):
        read(encoded(drawn_text(), "PNG"))
    for side in (9_500, 30_000):
        data = encoded(Image.new("1", (side, side)), "PNG")
        with pytest.raises(DocumentError, match="megapixels"):
            read(data)


def test_damaged_pictures(words):
    chance = random.Random(5)
    for kind in ("PNG", "JPEG", "TIFF", "BMP", "WEBP", "GIF"):
        data = encoded(words, kind)
        with pytest.raises(DocumentError, match="damaged"):
            read(data[:20])
        for _ in range(3):
            changed = bytearray(data)
            for _ in range(20):
                changed[chance.randrange(len(data))] = chance.randrange(256)
            with contextlib.suppress(DocumentError):
                read(bytes(changed))
    with pytest.raises(DocumentError, match="damaged"):
        extract(Path("a.png"), b"no picture", options=ReadOptions(ocr=True))


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.tiff", "a.heic"])
def test_a_picture_is_offered_to_be_read(name):
    with pytest.raises(NeedsRecognition, match=rf"picture.*{ocr.ACTION}"):
        extract(Path(name), b"\x89PNG\r\n\x1a\n")


def test_without_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "rapidocr", None)
    with pytest.raises(DocumentError, match=r"picture.*install text recognition"):
        extract(Path("a.png"), b"\x89PNG\r\n\x1a\n", options=ReadOptions(ocr=True))
