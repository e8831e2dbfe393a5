"""What a child may say: everything that is meant comes back, nothing else does."""

import contextlib
import copy
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.ingest import wire
from core.ingest.extracted import Extracted
from core.ingest.readers import FileText
from core.types import PageImage, Rectangle

TEXTS = st.text(st.characters(codec=None)) | st.text(max_size=3).map(lambda text: text * 200)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS | st.binary()
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4).map(tuple) | st.dictionaries(st.text(), inner, max_size=4),
)


def there_and_back(value):
    description, blobs = wire.encode(value)
    assert wire.sizes(description) == [len(blob) for blob in blobs]
    return wire.decode(description, blobs)


@given(VALUES)
def test_values_come_back(value):
    assert there_and_back(value) == value


def test_dataclasses_of_ingest_come_back():
    text = FileText(Extracted("ä" * 1000, "text/plain", (0, 5), "note"), "ab" * 16, 3, 1 << 60)
    assert there_and_back(text) == text
    assert there_and_back([text, [1]]) == (text, (1,))


def test_other_objects_are_not_sent():
    with pytest.raises(TypeError):
        wire.encode(object())
    with pytest.raises(TypeError):
        wire.encode({1, 2})


@pytest.mark.parametrize(
    "described",
    [
        {"class": "core.ingest.extracted:Extracted", "fields": [7, "text/plain", [], ""]},
        {"class": "core.ingest.extracted:Extracted", "fields": ["text", "text/plain", ["0"], ""]},
        {"class": "core.ingest.extracted:Extracted", "fields": ["text"]},
        {"class": "core.ingest.archive:Archive", "fields": []},
        {"class": "core.ingest.library:Path", "fields": []},
        {"class": "core.config:Settings", "fields": []},
        {"class": "subprocess:Popen", "fields": ["true"]},
        {"class": "core.ingest.nowhere:X", "fields": []},
        {"text": 1},
        {},
    ],
)
def test_what_was_not_written_here_is_refused(described):
    with pytest.raises(ValueError):
        wire.decode(json.dumps([described, []]).encode(), [])


def test_a_part_is_taken_once():
    description = json.dumps([[{"text": 1}, {"text": 1}], [3]]).encode()
    with pytest.raises(ValueError):
        wire.decode(description, [b"abc"])


def test_deep_nesting_is_refused():
    with pytest.raises(ValueError):
        wire.decode(b"[" * 200_000, [])


@given(st.binary(), st.lists(st.binary(), max_size=3), st.integers(0, 200), st.integers(0, 255))
def test_any_bytes_give_a_value_or_a_value_error(data, blobs, at, byte):
    good = bytearray(wire.encode(FileText(Extracted("t" * 300, "a"), "b" * 32, 1, 2))[0])
    good[at % len(good)] = byte
    for description in (data, bytes(good)):
        with contextlib.suppress(ValueError):
            wire.sizes(description)
        with contextlib.suppress(ValueError):
            wire.decode(description, blobs)


RECTANGLE = Rectangle(0.1, 0.1, 0.2, 0.2)
PAGE = PageImage(1, 3, 2, 2, 6, b"\0" * 12, (RECTANGLE,))
TEXT = FileText(Extracted("text of two pages", "a", (0, 5)), "b" * 32, 1, 2)


@pytest.mark.parametrize(
    ("value", "name", "lie"),
    [
        (TEXT, "n_bytes", 10**30),
        (TEXT, "n_bytes", -1),
        (TEXT, "content_hash", "x"),
        (TEXT.extracted, "page_starts", (5, 1, 10**30)),
        (TEXT.extracted, "page_starts", (0, 10**30)),
        (TEXT.extracted, "page_starts", (-1, 3)),
        (TEXT.extracted, "text", "half a pair \ud800 of it"),
        (TEXT.extracted, "note", "\udcff"),
        (TEXT.extracted, "note", "n" * 100_000),
        (RECTANGLE, "left", math.nan),
        (RECTANGLE, "right", math.inf),
        (RECTANGLE, "top", -1e30),
        (RECTANGLE, "bottom", 10**400),
        (PAGE, "n_pages", 10**30),
        (PAGE, "page", 4),
        (PAGE, "page", 0),
        (PAGE, "width", 3),
        (PAGE, "stride", 0),
        (PAGE, "highlights", (RECTANGLE,) * 200_001),
    ],
)
def test_what_no_reader_says_is_refused(value, name, lie):
    assert there_and_back(value) == value
    false = copy.copy(value)
    object.__setattr__(false, name, lie)  # a process that was taken over is not kept from it
    with pytest.raises(ValueError):
        there_and_back(false)
