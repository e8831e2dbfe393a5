"""What a child may say: everything that is meant comes back, nothing else does."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.ingest import wire
from core.ingest.extracted import Extracted
from core.ingest.readers import FileText

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
    text = FileText(Extracted("ä\ud800" * 1000, "text/plain", (0, 5), "note"), "ab", 3, 1 << 60)
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
    good = bytearray(wire.encode(FileText(Extracted("t" * 300, "a"), "b", 1, 2))[0])
    good[at % len(good)] = byte
    for description in (data, bytes(good)):
        with contextlib.suppress(ValueError):
            wire.sizes(description)
        with contextlib.suppress(ValueError):
            wire.decode(description, blobs)
