"""Pictures to text: photographs of pages, screenshots, faxes of several pages."""

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt

from core.errors import Cancelled, DocumentError, NoText
from core.ingest import ocr
from core.ingest.extracted import Extracted, cleaned, is_blank

MAX_MEGAPIXELS = 80
_MAX_PAGES = 1000
_MAX_SHORT_SIDE_PX, _MAX_LONG_SIDE_PX = 3000, 40_000
"""Larger pictures are made smaller; a long screenshot is long, a photograph has large letters."""
_ORIENTATION = 0x0112
"""EXIF: how the picture has to be turned to be seen upright."""
_LIGHT = 170
"""Of 255: letters that light were made for a dark page."""
# Others are read by programs outside or hold no page that anybody would ask about.
_FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "WEBP", "GIF")
_REDUCED = 254
"""TIFF's NewSubfileType; bit 0: this page is another one, made smaller."""


def read_picture(data: bytes, stop: Callable[[], bool]) -> Extracted:
    """The text of a picture; of a TIFF, of each page. ``stop`` is asked between pages.

    Raises DocumentError where the picture is damaged or too large or the extra is missing, NoText where
    nothing was recognized, and Cancelled.
    """
    if not ocr.is_available():
        raise DocumentError("This is a picture.", hint=ocr.offer())
    text = ""
    starts = []
    n_late = 0
    deadline = time.monotonic() + ocr.BUDGET_S
    for pixels in _pages(data):
        if stop():
            raise Cancelled
        if time.monotonic() > deadline:
            n_late += 1
            continue
        text += "\n\n" if text else ""
        starts.append(len(text))
        text += cleaned(ocr.recognize(pixels))
    if is_blank(text):
        raise NoText("No text was recognized in this picture.", hint=ocr.SCRIPTS)
    note = "The text was recognized in a picture; check figures against the original."
    if n_late:
        note += f" {ocr.left_over(n_late)}"
    return Extracted(text, "image/*", tuple(starts) if len(starts) > 1 else (), note)


def _pages(data: bytes) -> Iterator[ocr.Pixels]:
    from PIL import Image

    try:
        with _warnings_kept():
            image: Any = Image.open(BytesIO(data), formats=_FORMATS)
            n_frames = min(image.n_frames, _MAX_PAGES) if image.format == "TIFF" else 1
        for frame in range(n_frames):
            with _warnings_kept():
                image.seek(frame)
                reduced = frame and int(image.tag_v2.get(_REDUCED, 0)) & 1
                pixels = None if reduced else _pixels(image)
            if pixels is not None:
                yield pixels
    except Image.DecompressionBombError as error:
        raise _too_large() from error
    except (OSError, SyntaxError, ValueError, EOFError, TypeError, KeyError, IndexError) as error:
        raise DocumentError(
            "This picture is damaged or of a kind that is not read.",
            hint="Open it in a picture program and save it as PNG or JPEG.",
            details=repr(error),
        ) from error


@contextmanager
def _warnings_kept() -> Iterator[None]:
    """What Pillow warns of is no news to the user: sizes are checked here, damage ends in an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _pixels(image: Any) -> ocr.Pixels:
    """One frame, upright, on a plain background, no larger than it has to be."""
    from PIL import Image, ImageOps

    image.draft("RGB", (_MAX_SHORT_SIDE_PX, _MAX_SHORT_SIDE_PX))  # a JPEG is decoded at half or a quarter
    if image.width * image.height > MAX_MEGAPIXELS * 1_000_000:
        raise _too_large()
    orientation = image.getexif().get(_ORIENTATION, 1)
    is_deep = image.mode.startswith(("I", "F"))  # 16 bits and more: scanners, medicine
    is_transparent = image.has_transparency_data
    mode = image.mode if is_deep else "RGBA" if is_transparent else "RGB"
    plain = image if image.mode == mode else image.convert(mode)  # converting always copies
    short, long = sorted(plain.size)
    scale = min(_MAX_SHORT_SIDE_PX / short, _MAX_LONG_SIDE_PX / long, 1.0)
    if scale < 1.0:
        size = (max(round(plain.width * scale), 1), max(round(plain.height * scale), 1))
        plain = plain.resize(size, Image.Resampling.NEAREST if is_deep else Image.Resampling.BOX)
    plain.getexif()[_ORIENTATION] = orientation
    pixels = np.asarray(ImageOps.exif_transpose(plain))
    if is_deep:
        values = np.nan_to_num(pixels.astype(np.float32))
        low, high = float(values.min()), float(values.max())
        grey = ((values - low) * (255.0 / max(high - low, 1e-6))).astype(np.uint8)
        return np.repeat(grey[:, :, None], 3, axis=2)
    if is_transparent:
        pixels = _on_paper(pixels)
    return np.ascontiguousarray(pixels[:, :, ::-1])


def _on_paper(layers: npt.NDArray[np.uint8]) -> ocr.Pixels:
    """Red, green, blue and opacity as seen on white; on black, if the letters are light."""
    opacity = layers[:, :, 3:].astype(np.float32) / 255.0
    ink = float((layers[:, :, :3].mean(axis=2, keepdims=True) * opacity).sum() / max(opacity.sum(), 1.0))
    paper = 0.0 if ink > _LIGHT else 255.0
    mixed: npt.NDArray[np.float32] = layers[:, :, :3] * opacity + paper * (1.0 - opacity)
    return mixed.astype(np.uint8)


def _too_large() -> DocumentError:
    return DocumentError(
        f"This picture has more than {MAX_MEGAPIXELS} megapixels.",
        hint="Make it smaller, or cut it into parts, and add those.",
    )
