"""Whole runs on a model of two layers: what must hold of every run, whatever the machine does."""

import itertools
import json

import bench_data
import pytest

from core.bench.run import harness
from core.bench.run.harness import Options, measure
from core.bench.run.policies import VARIANTS, Local
from core.bench.run.workloads import Source
from core.config import Settings
from core.errors import KnownError, SettingsError

pytestmark = pytest.mark.model

ALL = ("none", "last-prompt", "prefix", "offload", "contextpilot", "slipstream")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    bench_data.library(folder / "library")
    bench_data.conversations(folder / "mtrag")
    bench_data.dialogues(folder / "locomo")
    return folder


@pytest.fixture
def run(data, tiny_model, monkeypatch):
    settings = Settings(model=str(tiny_model), n_ctx=1024, ram_cache_mb=200, ssd_cache_mb=200)
    monkeypatch.setattr(harness, "ROUND", 2)

    def run(workload, policies=ALL, *, opener=harness.open_policy, trace="", **options):
        source = Source(
            data, trace, k=3, **{k: options.pop(k) for k in ("limit", "warm", "seed") if k in options}
        )
        return measure(Options(workload, source, policies, **options), settings, opener=opener)

    return run


def test_single_questions_under_every_policy(run, tmp_path):
    record = tmp_path / "run.jsonl"
    result = run("multi-session", trace="made_document", resume=record, answers=True)
    policies = result["policies"]
    assert result["questions"] == 4
    assert policies["none"]["hit_ratio"] == 0
    assert policies["prefix"]["hit_ratio"] < policies["slipstream"]["hit_ratio"]
    assert result["same_tokens"]["differing_prompts"] == result["same_tokens"]["differing_logits"] == 0
    assert result["same_tokens"]["compared_logits"] >= 12, "four policies read the same prompts"
    assert result["harness"]["unequal_snapshots"] == 0
    rows = [json.loads(line)["row"] for line in record.read_text().splitlines()[1:]]
    assert len(rows) == 4 * len(ALL)
    for row in rows:
        assert row["n_live"] + row["n_ram"] + row["n_ssd"] + row["n_prefilled"] == row["n_prompt"]
        assert row["logprob"] < 0
    assert {p["evidence_kept"] for p in policies.values()} == {1.0}
    assert policies["last-prompt"]["hit_ratio_token_level"] >= policies["last-prompt"]["hit_ratio"]
    assert all(0 <= p["f1"] <= 1 for p in policies.values())
    assert result["bounds"]["blocks_seen_before"] == 0.5
    pair = result["pairs"]["slipstream/none"]
    assert pair["low"] <= pair["prefill_ratio"] <= pair["high"]
    assert result["pairs"]["none/prefix"]["logprob_difference"] == 0
    json.dumps(result, allow_nan=False)


@pytest.mark.parametrize("workload", ["multi-session", "multi-turn"])
def test_counting_finds_the_tokens_that_computing_finds(run, workload):
    trace = "made_document" if workload == "multi-session" else ""
    counted, computed = (run(workload, trace=trace, count=count) for count in (True, False))
    assert counted["harness"]["counted"] is True
    assert computed["harness"]["counted"] is False
    assert counted["policies"]["slipstream"]["gold_logprob_per_token"] is None
    for name, policy in computed["policies"].items():
        for figure in ("prompt_tokens", "prefilled_tokens", "annotation_tokens", "evidence_kept"):
            assert counted["policies"][name][figure] == policy[figure], (name, figure)


def test_conversations_share_their_history_and_leave_out_what_they_hold(run):
    result = run("multi-turn", ("none", "prefix", "slipstream"))
    policies = result["policies"]
    assert result["sessions"] == 2
    assert policies["slipstream"]["prompt_tokens"] < policies["prefix"]["prompt_tokens"]
    assert policies["slipstream"]["prompt_tokens_before_dedup"] > policies["slipstream"]["prompt_tokens"]
    assert policies["prefix"]["hit_ratio"] > 0.3, "the turns before are there"
    assert policies["slipstream"]["evidence_kept"] == 1
    assert result["same_tokens"]["differing_prompts"] == 0
    mixed = run("hybrid:2", ("last-prompt", "prefix"))["policies"]
    assert mixed["last-prompt"]["hit_ratio"] < 0.3 < mixed["prefix"]["hit_ratio"]


def test_nothing_moved_and_nothing_left_out_gives_the_same_tokens(run):
    result = run("memory", ("none", "slipstream"), orders=2, annotations=2)
    assert result["policies"]["slipstream"]["moved"] == 0
    assert result["same_tokens"]["compared_logits"] == 3, "every prompt of one is one of the other"
    assert result["pairs"]["slipstream/none"]["logprob_difference"] == 0
    assert result["policies"]["slipstream"]["hit_ratio"] > 0.5
    minds = result["order_sensitivity"]
    assert minds["questions"] == 2
    assert 0 < minds["deviation"] < minds["range"]
    said = result["annotations"]
    assert said["questions"] == 2
    assert len({kind["logprob"] for kind in said["kinds"].values()}) == len(said["kinds"])


def test_a_counted_run_can_still_read_some_questions(run):
    result = run("memory", ("slipstream",), count=True, annotations=2, orders=1, references=1)
    assert result["harness"]["counted"]
    assert result["annotations"]["questions"] == 2
    assert result["order_sensitivity"]["deviation"] > 0
    computed = run("memory", ("slipstream",), annotations=2)
    assert result["annotations"] == computed["annotations"]


def test_choices_that_were_compared_can_be_compared_again(run):
    result = run("multi-session", tuple(VARIANTS), trace="made_document")
    policies = result["policies"]
    assert policies["annotation:none"]["annotation_tokens"] == 0
    assert (
        policies["annotation:ranking"]["annotation_tokens"] < policies["annotation:last"]["annotation_tokens"]
    )
    for policy in policies.values():
        assert all(step["p99"] >= step["p50"] >= 0 for step in policy["plan_steps_ms"].values())
        assert policy["plan_steps_ms"]["order"]["p50"] > 0


def test_after_a_restart_only_what_is_on_disk_is_there(run):
    result = run("restart", ("prefix", "offload"), trace="made_document", limit=2)
    tiers = {name: found["hit_ratio_by_tier"] for name, found in result["policies"].items()}
    assert result["questions"] == 2
    assert tiers["offload"]["ssd"] > 0
    assert tiers["prefix"]["ssd"] == 0
    assert all(found["reopen_s"] > 0 for found in result["policies"].values())


def test_a_known_batch_is_run_in_another_order(run, tmp_path):
    record = tmp_path / "run.jsonl"
    policies = ("last-prompt", "slipstream", "slipstream-schedule", "contextpilot")
    result = run("batch", policies, trace="made_document", resume=record, seed=2)
    asked = {name: [] for name in policies}
    for line in record.read_text().splitlines()[1:]:
        entry = json.loads(line)
        asked[entry["policy"]].append(int(entry["row"]["qid"][1:]) % 2)
    arrival = asked["last-prompt"]
    assert asked["slipstream-schedule"] == arrival
    assert sum(a != b for a, b in itertools.pairwise(arrival)) > 1
    for name in ("slipstream", "contextpilot"):
        switches = sum(a != b for a, b in itertools.pairwise(asked[name]))
        assert switches == 1, f"{name} reads one document after the other"
    assert "slipstream/slipstream-schedule" in result["pairs"]


def counts(path):
    names = ("n_prompt", "n_live", "n_ram", "n_ssd", "n_prefilled", "path", "logits", "logprob")
    entries = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    return {(e["policy"], e["row"]["qid"]): [e["row"][name] for name in names] for e in entries}


def test_resumed_is_uninterrupted(run, tmp_path):
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    policies = ("last-prompt", "offload", "slipstream")
    run("multi-turn", policies, resume=whole)
    lines = whole.read_text().splitlines(keepends=True)
    cut.write_text("".join(lines[:11]) + lines[11][:20])  # killed within the second round, within a line
    result = run("multi-turn", policies, resume=cut)
    assert result["harness"]["recalled"] == 10
    assert result["harness"]["recalled_differently"] == 0
    assert counts(cut) == counts(whole)
    assert result["questions"] == 6


def test_the_record_of_another_run_is_refused(run, tmp_path):
    record = tmp_path / "run.jsonl"
    run("memory", ("none",), resume=record)
    with pytest.raises(SettingsError, match="another run: its policies"):
        run("memory", ("prefix",), resume=record)
    record.write_text("nonsense\n")
    with pytest.raises(KnownError, match="no record"):
        run("memory", ("none",), resume=record)


class _Careless(Local):
    """The product with a fault planted: it throws its cache away before every question."""

    def ask(self, asked):
        self.bench.cache.forget_everything()
        return super().ask(asked)


def test_a_regression_shows_in_the_ratios(run):
    def broken(name, *arguments):
        return _Careless(name, *arguments) if name == "slipstream" else Local(name, *arguments)

    sound = run("memory", ("prefix", "slipstream"))
    faulty = run("memory", ("prefix", "slipstream"), opener=broken)
    assert faulty["policies"]["slipstream"]["hit_ratio"] == 0 < sound["policies"]["slipstream"]["hit_ratio"]
    ratio = "prefill_ratio"
    assert faulty["pairs"]["slipstream/prefix"][ratio] > 1.2 * sound["pairs"]["slipstream/prefix"][ratio]
    assert faulty["policies"]["prefix"]["hit_ratio"] == sound["policies"]["prefix"]["hit_ratio"]


def test_what_makes_no_sense_is_refused(run, tmp_path):
    with pytest.raises(SettingsError, match="only counts"):
        run("multi-session", count=True, resume=tmp_path / "record")
    with pytest.raises(SettingsError, match="only counts"):
        run("multi-session", count=True, answers=True)
    with pytest.raises(SettingsError, match="cannot be resumed"):
        run("multi-session", ("first-word:2",), resume=tmp_path / "record")
    with pytest.raises(SettingsError, match="cannot be counted"):
        run("multi-session", ("slipstream", "blend:0"), count=True)
    with pytest.raises(SettingsError, match="no policy"):
        run("memory", ("nonesuch",))
    with pytest.raises(SettingsError, match="no workload"):
        run("nonesuch", ("none",))
    with pytest.raises(SettingsError, match="each only once"):
        run("memory", ("none", "none"))
    with pytest.raises(SettingsError, match="left to be measured"):
        run("memory", ("none",), warm=3)
