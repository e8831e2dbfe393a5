"""``slipstream bench files``: a small folder, and how outcomes are judged."""

import json

import pytest

from core.bench.files import difference, measure
from core.cli import main
from core.errors import DocumentError


def found(text="", outcome="text", message="", n_pages=0):
    return {"outcome": outcome, "text": text, "message": message, "n_pages": n_pages}


@pytest.mark.parametrize(
    ("expected", "outcome", "why"),
    [
        ({"outcome": "text", "must_contain": ["a b|c"]}, found("x a\n b"), ""),
        ({"outcome": "text", "must_contain": ["ab"], "ignore_whitespace": True}, found("a b"), ""),
        ({"outcome": "text", "must_contain": ["fi"]}, found("\ufb01"), ""),
        ({"outcome": "text", "must_contain": ["d"]}, found("abc"), "lacks d"),
        ({"outcome": "text", "in_order": ["b", "a"]}, found("a b"), "lacks a, or has it too early"),
        ({"outcome": "text", "must_not_contain": ["<p>"]}, found("<p>"), "holds '<p>'"),
        ({"outcome": "text", "values_same_row": [["a", "1|2"]]}, found("a | 2\nb"), ""),
        ({"outcome": "text", "values_same_row": [["a", "b"]]}, found("a\nb"), "not in one row: a, b"),
        ({"outcome": "text", "pages": 2}, found("a", n_pages=3), "3 pages"),
        ({"outcome": "reject"}, found("a"), "reject was expected:"),
        ({"outcome": "text_or_reject"}, found(outcome="reject"), ""),
        ({"outcome": "text"}, found(outcome="crash", message="no"), "text was expected: no"),
        (
            {"outcome": "reject", "message_must_mention": ["damaged|broken"]},
            found(outcome="reject", message="It is Broken."),
            "",
        ),
        (
            {"outcome": "reject", "message_must_mention": ["page"]},
            found(outcome="reject", message="no"),
            "the message does not mention page: no",
        ),
    ],
)
def test_differences(expected, outcome, why):
    assert difference(expected, outcome) == why


def test_a_folder(capsys, tmp_path):
    (tmp_path / "a.csv").write_text("Name,Pay\nAda,9100\n")
    (tmp_path / "b.txt").write_text("")
    files = [
        {"file": "a.csv", "expected": {"outcome": "text", "values_same_row": [["Ada", "9100"]]}},
        {"file": "b.txt", "expected": {"outcome": "reject", "message_must_mention": ["empty"]}},
        {"file": "c.txt", "expected": {"outcome": "text"}},
    ]
    (tmp_path / "manifest.json").write_text(json.dumps({"files": files}))
    assert main(["--data-dir", str(tmp_path / "data"), "bench", "files", str(tmp_path), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["ok"], result["total"]) == (2, 3)
    assert [each["outcome"] for each in result["files"]] == ["text", "reject", "reject"]
    assert result["files"][0]["peak_mb"] > 1


def test_a_folder_without_a_manifest(tmp_path):
    with pytest.raises(DocumentError, match="manifest cannot be read"):
        measure(tmp_path)
