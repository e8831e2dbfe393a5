"""The command as a user types it: output, exit codes, and never a traceback."""

import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from core import cli
from core.config import Settings, WindowOptions, load_settings, sample_documents, save_settings

pytestmark = pytest.mark.model


@pytest.fixture
def run(tmp_path, tiny_model, capsys):
    def run(*arguments, data="data", model=tiny_model):
        options = ["--data-dir", str(tmp_path / data)] + (["--model", str(model)] if model else [])
        try:
            code = cli.main([*arguments[:1], *options, *arguments[1:]])
        except SystemExit as error:
            code = error.code
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return code, out, err

    return run


def test_ask_as_json(run):
    samples = sample_documents()
    code, out, err = run(
        "ask", "--max-tokens", "8", "--docs", str(samples / "travel-policy.pdf"), str(samples / "dishwasher-manual.txt"),
        "--json", "Who approves a journey abroad?", "And what does it cost?",
    )  # fmt: skip
    assert (code, err) == (0, "")
    first, second = (json.loads(line) for line in out.splitlines())
    assert set(first) >= {"question", "answer", "citations", "passages", "metrics"}
    assert first["question"] == "Who approves a journey abroad?"
    assert first["passages"]["used"] <= first["passages"]["found"]
    for metrics in (first["metrics"], second["metrics"]):
        assert (
            metrics["n_live_tokens"]
            + metrics["n_ram_tokens"]
            + metrics["n_ssd_tokens"]
            + metrics["n_prefilled_tokens"]
            == metrics["n_prompt_tokens"]
        )
    assert second["metrics"]["n_live_tokens"] >= 0.85 * first["metrics"]["n_prompt_tokens"]


def test_ask_in_words(run):
    code, out, _ = run(
        "ask", "--max-tokens", "8", "--docs", str(sample_documents()), "--", "How much is the rent?"
    )
    assert code == 0
    # The instructions may have been read ahead while the documents were, or not yet.
    assert re.search(r"of [\d,]+ tokens reused|[\d,]+ tokens read in", out)


def test_a_question_right_after_the_documents(run):
    code, out, _ = run(
        "ask", "--max-tokens", "4", "--json", "--docs", str(sample_documents()), "How much is it?"
    )
    assert code == 0
    assert json.loads(out)["question"] == "How much is it?"


def test_only_the_named_documents_are_asked(run):
    samples = sample_documents()
    run("library", "add", str(samples))
    _, out, _ = run(
        "ask",
        "--max-tokens",
        "4",
        "--json",
        "--docs",
        str(samples / "travel-policy.pdf"),
        "--",
        "rent journey",
    )
    assert json.loads(out)["passages"]["found"] > 0
    policy = run(
        "ask", "--max-tokens", "4", "--docs", str(samples / "travel-policy.pdf"), "--", "rent journey"
    )[1]
    assert "tenancy" not in policy


def test_library_from_add_to_remove(run, tmp_path):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.txt").write_text("Alpha is the first letter.")
    (folder / "b.md").write_text("# Beta\n\nBeta is the second letter.")
    code, out, _ = run("library", "add", str(folder))
    assert code == 0
    assert out.startswith("2 of 2 files ready, 0 failed, 2 blocks")
    code, out, _ = run("library", "list", "--json")
    assert [json.loads(line)["title"] for line in out.splitlines()] == ["a.txt", "b.md"]
    assert run("library", "remove", str(folder / "a.txt"))[0] == 0
    assert "a.txt" not in run("library", "list")[1]
    assert run("library", "remove", str(folder / "a.txt"))[0] == 1
    assert run("library", "remove", str(folder))[0] == 0
    assert "empty" in run("library", "list")[1]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("ask",), 2, "no question"),
        (("ask", "--max-tokens", "0", "x"), 2, "at least 1"),
        (("ask", "--docs", "/nowhere/x.pdf", "--", "x"), 1, "x.pdf"),
        (("library", "add", "/nowhere/x.pdf"), 1, "x.pdf"),
        (("nonsense",), 2, "invalid choice"),
    ],
)
def test_mistakes_are_explained(run, arguments, code, says):
    found, _, err = run(*arguments)
    assert found == code
    assert says in err


def test_a_bad_model_is_refused_and_not_remembered(run, tmp_path):
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF\x03\x00\x00\x00 and then nothing")
    code, _, err = run("ask", "x", model=bad)
    assert code == 1
    assert "damaged" in err
    assert load_settings(tmp_path / "data").model == ""


def test_the_last_model_that_loaded_is_used_again(run, tmp_path, tiny_model):
    run("ask", "--max-tokens", "2", "x")
    assert load_settings(tmp_path / "data").model == str(tiny_model)
    run("ask", "--max-tokens", "2", "x", model="embedded")
    assert load_settings(tmp_path / "data").model == ""


def test_a_second_process_restores_from_ssd(run, tmp_path):
    arguments = (
        "ask",
        "--max-tokens",
        "4",
        "--json",
        "--docs",
        str(sample_documents()),
        "--",
        "How much is the rent?",
    )
    first, second = (json.loads(run(*arguments)[1])["metrics"] for _ in range(2))
    assert first["n_ssd_tokens"] == 0
    assert second["n_ssd_tokens"] > 0.9 * second["n_prompt_tokens"]
    assert second["n_prefilled_tokens"] + second["n_ssd_tokens"] == second["n_prompt_tokens"]
    run("library", "remove", str(sample_documents()))
    left = list((tmp_path / "data" / "snapshots").glob("*.kv"))
    assert len(left) == 1, "only the instructions are left: they hold nothing of a document"


def test_a_locked_database_ends_with_an_error_and_never_hangs(run, tmp_path, monkeypatch):
    run("library", "add", str(sample_documents()))
    monkeypatch.setattr("core.store.database.BUSY_TIMEOUT_MS", 100)
    blocker = sqlite3.connect(tmp_path / "data" / "slipstream.db")
    blocker.execute("BEGIN IMMEDIATE")
    try:
        code, _, err = run("library", "remove", str(sample_documents()))
    finally:
        blocker.rollback()
        blocker.close()
    assert code == 1
    assert "database" in err
    assert "bug" not in err


@pytest.mark.parametrize("question", ["問" * 120, "~nobody what is it?", "a\udcffb"])
def test_questions_that_are_no_paths(run, question):
    code, _, err = run("ask", "--max-tokens", "2", "--docs", str(sample_documents()), question)
    assert code in (0, cli.EXIT_USAGE)
    assert "bug" not in err


def test_bad_settings_are_explained(run, tmp_path):
    (tmp_path / "data").mkdir()
    for text in ("n_ctx = 'many'", "colour = 1", "= broken", "n_ctx = 3"):
        (tmp_path / "data" / "settings.toml").write_text(text)
        code, _, err = run("library", "list", model=None)
        assert code == 1
        assert "settings" in err or "setting" in err


def test_everything_in_the_data_folder_is_private(run, tmp_path):
    run("library", "add", str(sample_documents()))
    for path in [tmp_path / "data", *(tmp_path / "data").rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path


def test_without_a_command_the_window_opens(tmp_path):
    opened = []
    options = ["--data-dir", str(tmp_path / "d")]
    assert cli.main(options, open_window=lambda o: opened.append(o) or 0) == 0
    assert cli.main(["kiosk", *options], open_window=lambda o: opened.append(o) or 0) == 0
    assert cli.main([*options, "--samples"], open_window=lambda o: opened.append(o) or 0) == 0
    assert all(isinstance(o, WindowOptions) and o.data_dir == tmp_path / "d" for o in opened)
    assert [o.kiosk for o in opened] == [False, True, False]
    assert [o.samples for o in opened] == [None, None, sample_documents()]
    assert cli.main(options) == 1


def test_an_unusable_data_folder_is_explained(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    assert cli.main(["library", "list", "--data-dir", str(tmp_path / "file" / "x")]) == 1
    assert "--data-dir" in capsys.readouterr().err


def test_ctrl_c_ends_with_130_and_keeps_what_was_read(tmp_path, embedded_model):
    command = [
        sys.executable, "-c", "import sys; from core.cli import main; sys.exit(main(sys.argv[1:]))", "ask",
        "--data-dir", str(tmp_path / "data"), "--model", str(embedded_model), "--max-tokens", "2000",
        "--docs", str(sample_documents()), "--", "Who approves a journey abroad?",
    ]  # fmt: skip
    # Where the tests are a script's background job SIGINT is ignored, and the child would inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(cli.__file__).parent.parent,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    signal.signal(signal.SIGINT, before)
    database = tmp_path / "data" / "slipstream.db"
    deadline = time.monotonic() + 60
    while not database.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(3)  # somewhere in loading, reading or answering: every one of them must end alike
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == cli.EXIT_INTERRUPTED, (out, err)
    assert "Traceback" not in err
    assert "Stopped." in err


def test_a_second_process_goes_on_without_the_ssd_tier_and_says_so(run, tmp_path):
    from core.engine.snapshots import SnapshotStore

    store = SnapshotStore(tmp_path / "data" / "snapshots", 1 << 30, 1 << 30, pytest.fail)
    try:
        code, out, err = run(
            "ask",
            "--max-tokens",
            "2",
            "--json",
            "--docs",
            str(sample_documents()),
            "--",
            "How much is the rent?",
        )
    finally:
        store.close()
    assert code == 0
    assert json.loads(out)["metrics"]["n_ssd_tokens"] == 0
    assert "another" in err.lower() or "other" in err.lower()


@pytest.mark.slow
def test_killed_at_any_moment_the_next_start_uses_what_is_whole_and_no_more(run, tmp_path, tiny_model):
    """``SLIPSTREAM_KILLS`` sets how many kills; their moments are random, and the same in every run."""
    samples = str(sample_documents())
    questions = ["How much is the rent?", "Who repairs the heating?", "Is a dog allowed?"]
    arguments = ["ask", "--max-tokens", "8", "--docs", samples, "--json", "--", *questions]
    save_settings(tmp_path / "cold", Settings(ram_cache_mb=0, ssd_cache_mb=0))
    expected = [json.loads(line)["answer"] for line in run(*arguments, data="cold")[1].splitlines()]
    budget = 3
    save_settings(tmp_path / "data", Settings(ssd_cache_mb=budget))
    moments = random.Random(1)
    command = [
        sys.executable, "-c", "import sys; from core.cli import main; sys.exit(main())",
        *arguments[:1], "--data-dir", str(tmp_path / "data"), "--model", str(tiny_model), *arguments[1:],
    ]  # fmt: skip
    finished = 0
    for _ in range(int(os.environ.get("SLIPSTREAM_KILLS", "6"))):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            out, err = child.communicate(timeout=moments.uniform(0.8, 4.0))
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.communicate()
        else:
            finished += 1
            assert (child.returncode, err) == (0, "")
            assert [json.loads(line)["answer"] for line in out.splitlines()] == expected
    code, out, err = run(*arguments)
    assert (code, err) == (0, "")
    assert [json.loads(line)["answer"] for line in out.splitlines()] == expected
    kept = list((tmp_path / "data" / "snapshots").iterdir())
    assert not [path for path in kept if path.name.endswith(".tmp")]
    assert sum(path.stat().st_size for path in kept) <= budget * 10**6
    with sqlite3.connect(tmp_path / "data" / "slipstream.db") as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_each_question_by_itself_and_planned_together(run, tmp_path):
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / "settings.toml").write_text('dedup = "blocks"\n', encoding="utf-8")
    samples = str(sample_documents())
    questions = ["How much is the rent?", "When is the rent paid?", "Who repairs the heating?"]
    arguments = ["ask", "--max-tokens", "8", "--docs", samples, "--json", "--each", "--", *questions]
    code, out, err = run(*arguments)
    assert (code, err) == (0, "")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [row["question"] for row in rows] == questions
    assert all(row["metrics"]["n_deduplicated_tokens"] == 0 for row in rows), "no conversation joins them"
    assert rows[1]["metrics"]["hit_ratio"] > 0
