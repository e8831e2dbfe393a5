"""``slipstream bench``: which options reach which benchmark, and what is printed."""

import json

from core.cli import main


def run(capsys, tmp_path, *arguments) -> str:
    assert main(["--data-dir", str(tmp_path / "data"), "bench", *arguments]) == 0
    return capsys.readouterr().out


def test_reuse(capsys, tmp_path):
    trace = tmp_path / "trace.jsonl"
    trace.write_text(
        "".join(json.dumps({"blocks": [f"a#{i % 3}", "b#1", f"c#{i}"]}) + "\n" for i in range(9))
    )
    emitted = tmp_path / "orders.jsonl"
    options = [
        "reuse",
        "--trace",
        str(trace),
        "--k",
        "2",
        "--limit",
        "8",
        "--shuffle",
        "1",
        "--eviction",
        "lru",
    ]
    options += ["--capacity-blocks", "4", "--emit", str(emitted), "--window", "2", "--idle-blocks", "1"]
    result = json.loads(run(capsys, tmp_path, *options, "--json"))
    assert (result["contexts"], result["blocks"], result["k"], result["eviction"]) == (8, 16, 2, "lru")
    assert (result["capacity_blocks"], result["window"]) == (4, 2)
    assert len(emitted.read_text().splitlines()) == 8
    assert "hit_ratio" in run(capsys, tmp_path, *options)


def test_index(capsys, tmp_path):
    result = json.loads(run(capsys, tmp_path, "index", "--contexts", "40", "--k", "5", "--json"))
    assert (result["contexts"], result["k"]) == (40, 5)


def test_a_trace_that_is_missing_is_explained(capsys, tmp_path):
    assert main(["--data-dir", str(tmp_path), "bench", "reuse", "--trace", str(tmp_path / "no")]) == 1
    assert "trace cannot be read" in capsys.readouterr().err
