"""Text recognition: pixels to text, with rapidocr and onnxruntime, which are an extra.

The models are files of the package; nothing is downloaded. They read Latin script, Greek letters in
formulas, Chinese and Japanese; no Cyrillic, Arabic, Hebrew, Korean or Indian script.
"""

import importlib.util
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.errors import DocumentError
from core.ingest.columns import Line
from core.ingest.page_order import page_order

Pixels = npt.NDArray[np.uint8]
"""An image: (height, width, 3), blue first, as OpenCV and PDFium have it."""
ACTION = "Recognize text"
"""What the window calls it: notes name it, so that whoever reads them finds it."""
SCRIPTS = "It reads Latin, Chinese and Japanese script."
ILLEGIBLE = "[illegible]"
BUDGET_S = 3000.0
"""Of one file: pages that are not reached in that time are left, and said to be. Below ``readers.OCR_S``."""
_LEGIBLE = 0.7
"""Confidence of the model in a line; below it, letters are guessed."""
_MAX_SIDE_PX = 2400
"""Larger images are made smaller before text is looked for: A4 at 200 dpi is 2,340 high."""
_STRIP = 1.5
"""Times its width an image may be high before it is read in strips, which a long screenshot needs."""
_MAX_RATIO = 3
"""Of an image's long side to its short one."""
_MIN_SIDE_PX = 64


def is_available() -> bool:
    """Whether the extra is installed. Cheap: nothing is imported."""
    return all(importlib.util.find_spec(name) is not None for name in ("rapidocr", "onnxruntime"))


def offer() -> str:
    """What the user can do about a text that is only there as an image."""
    if is_available():
        return f"“{ACTION}” (OCR) reads it, which takes seconds a page."
    return f"To have it read, install text recognition (OCR): the extra “ocr”. Then choose “{ACTION}”."


def left_over(n_pages: int) -> str:
    """What is said of pages that were not reached in ``BUDGET_S``."""
    pages = "1 page was" if n_pages == 1 else f"{n_pages:,} pages were"
    return (
        f"{pages} left after {BUDGET_S / 60:.0f} minutes, without being recognized: save the rest as a file"
        " of its own and add that."
    )


def recognize(pixels: Pixels) -> str:
    """The text of an image in reading order; "" if there is none.

    Rows of tables have their cells divided by " | "; lines that the model is unsure of are "[illegible]".
    One thread at a time. Raises DocumentError where the extra is missing or damaged.
    """
    engine = _engine()
    texts = [_arranged(*_lines(engine, strip), strip.shape[1]) for strip in _strips(pixels)]
    text = "\n".join(part for part in texts if part)
    return text if text.replace(ILLEGIBLE, "").strip(" |\n") else ""


def _lines(engine: Any, pixels: Pixels) -> tuple[list[Line], list[str]]:
    found = engine(_padded(pixels))
    if found.boxes is None or found.txts is None:
        return [], []
    height = pixels.shape[0]
    lines = [
        Line(
            float(box[:, 0].min()),
            height - float(box[:, 1].max()),
            float(box[:, 0].max()),
            height - float(box[:, 1].min()),
        )
        for box in found.boxes
    ]
    texts = [
        text.strip() if score >= _LEGIBLE else ILLEGIBLE
        for text, score in zip(found.txts, found.scores, strict=True)
    ]
    return lines, texts


def _arranged(lines: list[Line], texts: list[str], width: float) -> str:
    order = page_order(lines, width, drawn=False) or []
    return "".join(before + texts[number] for before, number in order)


def _padded(pixels: Pixels) -> Pixels:
    """White added to a narrow image: the model enlarges its short side, whatever becomes of the long one."""
    height, width = pixels.shape[:2]
    wide = max(width, min(height, _MAX_SIDE_PX) // _MAX_RATIO, _MIN_SIDE_PX)
    high = max(height, width // _MAX_RATIO, _MIN_SIDE_PX)
    if (high, wide) == (height, width):
        return pixels
    return np.pad(pixels, ((0, high - height), (0, wide - width), (0, 0)), constant_values=255)


def _strips(pixels: Pixels) -> Iterator[Pixels]:
    """The image from top to bottom, cut where a row of pixels is most even: between two lines."""
    height, width = pixels.shape[:2]
    if height <= _MAX_SIDE_PX or height <= 2 * _STRIP * width:
        yield pixels
        return
    step = min(max(int(_STRIP * width), 200), _MAX_SIDE_PX)
    start = 0
    while height - start > step:
        earliest = start + step - step // 4
        unevenness = pixels[earliest : start + step].std(axis=(1, 2))
        end = earliest + int(unevenness.argmin()) + 1
        yield np.ascontiguousarray(pixels[start:end])
        start = end
    yield np.ascontiguousarray(pixels[start:])


@cache
def _engine() -> Any:
    if not is_available():
        raise DocumentError("Text recognition is not installed.", hint=offer())
    try:
        import rapidocr

        # Named by path, they are never looked up in, nor fetched from, the package's list of downloads.
        models = Path(rapidocr.__file__).parent / "models"
        paths = {
            f"{part}.model_path": str(next(models.glob(f"*_{part.lower()}_*.onnx")))
            for part in ("Det", "Cls", "Rec")
        }
        # Half the cores: somebody may be reading an answer meanwhile.
        n_threads = max((os.cpu_count() or 2) // 2, 1)
        engine: Any = rapidocr.RapidOCR(
            params={
                **paths,
                "Global.log_level": "critical",
                "Global.max_side_len": _MAX_SIDE_PX,
                "EngineConfig.onnxruntime.intra_op_num_threads": n_threads,
            }
        )
    except (ImportError, StopIteration, OSError) as error:
        raise DocumentError(
            "Text recognition is installed and damaged.",
            hint="Install the extra “ocr” again.",
            details=repr(error),
        ) from error
    return engine
