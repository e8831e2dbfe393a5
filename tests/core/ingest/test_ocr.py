import importlib.util
import socket
import subprocess
import sys

import numpy as np
import pytest

from core.errors import DocumentError
from core.ingest import ocr

NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight")


def no_network(*_args, **_kwargs):
    raise AssertionError("text recognition went to the network")


def test_absence_is_told_and_costs_no_import(monkeypatch):
    for name in ("rapidocr", "onnxruntime"):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, name, None)
            assert not ocr.is_available()
            assert "install" in ocr.offer()
            ocr._engine.cache_clear()
            with pytest.raises(DocumentError, match=r"not installed.*extra “ocr”"):
                ocr.recognize(np.full((40, 40, 3), 255, dtype=np.uint8))
    code = "import sys; from core.ingest import ocr; ocr.is_available(); print('rapidocr' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


def test_available_where_the_packages_are():
    installed = all(importlib.util.find_spec(name) for name in ("rapidocr", "onnxruntime"))
    assert ocr.is_available() == installed
    if installed:
        assert ocr.ACTION in ocr.offer()


def test_text_without_a_network(drawn_text, monkeypatch):
    monkeypatch.setattr(socket.socket, "connect", no_network)
    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    ocr._engine.cache_clear()
    image = drawn_text((60, 60, "The harbour opens in 1874"), (60, 110, "and closes at night."))
    assert ocr.recognize(np.asarray(image)) == "The harbour opens in 1874\nand closes at night."


def test_rows_and_paragraphs(drawn_text):
    cells = [(60, "Name"), (420, "Salary")], [(60, "Ada"), (420, "9100")], [(60, "Grace"), (420, "8700")]
    table = [(x, 60 + 45 * row, text) for row, line in enumerate(cells) for x, text in line]
    image = drawn_text(*table, (60, 300, "A paragraph below."))
    assert ocr.recognize(np.asarray(image)) == (
        "Name | Salary\nAda | 9100\nGrace | 8700\n\nA paragraph below."
    )


def test_columns_of_a_scan_are_read_one_after_the_other(drawn_text):
    left, right = ([f"{name} {word} is on its line" for word in NUMBERS] for name in ("left", "right"))
    page = [
        (40 + 480 * x, 120 + 42 * y, text)
        for x, column in enumerate((left, right))
        for y, text in enumerate(column)
    ]
    image = drawn_text(
        (40, 30, "The title of a page that has two columns of text, set above both"), *page, size=(960, 520)
    )
    lines = [line for line in ocr.recognize(np.asarray(image)).split("\n") if line]
    assert lines[0].startswith("The title")
    assert [line.split()[0] for line in lines[1:]] == ["left"] * 8 + ["right"] * 8


def test_a_long_screenshot_is_read_in_strips(drawn_text):
    lines = [(40, 40 + 60 * row, f"Message number {row}") for row in range(41)]
    read = ocr.recognize(np.asarray(drawn_text(*lines, size=(700, 2500))))
    assert [line for line in read.split("\n") if line] == [text for _x, _y, text in lines]


def test_nothing_to_read(drawn_text):
    assert ocr.recognize(np.asarray(drawn_text())) == ""
    noise = np.random.default_rng(3).integers(0, 255, (300, 300, 3), dtype=np.uint8)
    assert ocr.recognize(noise) == ""
    for size in ((1, 1), (1, 900), (900, 1)):
        assert ocr.recognize(np.full((*size, 3), 255, dtype=np.uint8)) == ""


def test_a_damaged_installation_says_so(monkeypatch, tmp_path):
    rapidocr = pytest.importorskip("rapidocr")
    ocr._engine.cache_clear()
    monkeypatch.setattr(rapidocr, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(DocumentError, match=r"damaged.*again"):
        ocr.recognize(np.full((40, 40, 3), 255, dtype=np.uint8))
    ocr._engine.cache_clear()
