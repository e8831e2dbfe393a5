"""Pages of a PDF as images, for text recognition."""

from typing import Any

import numpy as np

from core.errors import DocumentError
from core.ingest.ocr import Pixels

_DPI = 200
_MAX_PIXELS = 8_000_000
"""Of a rendered page: A4 at 200 dpi has 3.9 million."""
_MAX_IMAGE_PIXELS = 120_000_000
"""Of an image in a page: A3 at 600 dpi has 70 million. Larger ones would take gigabytes to decode."""
_MAX_DEPTH = 8
"""Of drawings within drawings."""


def rendered(page: Any) -> Pixels:
    """The page as it is seen. Raises DocumentError where an image in it is too large to be decoded."""
    import pypdfium2
    import pypdfium2.raw as pdfium

    try:
        for image in page.get_objects(filter=(pdfium.FPDF_PAGEOBJ_IMAGE,), max_depth=_MAX_DEPTH):
            width, height = image.get_px_size()
            if width * height > _MAX_IMAGE_PIXELS:
                raise DocumentError(f"An image of {width:,} × {height:,} pixels is too large to be read.")
        width, height = page.get_size()
        if not (width > 0 and height > 0):
            raise DocumentError("A page without size cannot be read.")
        scale = min(_DPI / 72, (_MAX_PIXELS / (width * height)) ** 0.5)
        bitmap = page.render(scale=scale)
    except (pypdfium2.PdfiumError, ValueError, MemoryError) as error:
        raise DocumentError("A page cannot be drawn.", details=repr(error)) from error
    pixels = np.asarray(bitmap.to_numpy(), dtype=np.uint8)
    channels = pixels[:, :, :3] if pixels.ndim == 3 else pixels[:, :, None]
    found = np.array(np.broadcast_to(channels, (*pixels.shape[:2], 3)), order="C")
    bitmap.close()
    return found
