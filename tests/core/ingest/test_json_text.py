from pathlib import Path

from core.ingest.readers import extract


def read(data, name="a.json"):
    return extract(Path(name), data).text


def test_values_with_the_way_to_them():
    assert read(b'{"a": {"b": [1, true, null]}, "people": [{"name": "Ada", "pay": 9100}], "c": "x"}') == (
        "a.b: 1, true, null\nname: Ada | pay: 9100\nc: x"
    )
    assert read(b'[{"a": {"b": 1}}, "x"]') == "[0].a.b: 1\n[1]: x"
    assert read(b'["x", "y"]') == "x\ny"


def test_lines_of_json_and_what_is_none():
    assert read(b'{"a": 1, "b": "x"}\n{"a": 2}\nno json\n', "a.jsonl") == "a: 1 | b: x\na: 2\nno json\n"
    assert read(b"{broken") == "{broken"
    assert read(b"[" * 100_000 + b"1") == "[" * 100_000 + "1"
    assert read(b"1" * 5000) == "1" * 5000


def test_damaged(survives):
    survives("a.json", b'{"a": ["\\ud800", "b"]}')
    assert read(b'{"a": "x\\ud800y"}') == "a: xy"
