"""The report says what the data says, in figures that can be found again, whatever the data looks like."""

import html
import json
import re
import stat
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.bench.report import table, write_html
from core.bench.report.figures import read
from core.bench.report.page import page
from core.bench.report.plots import COLOURS
from core.bench.report.targets import judge, ratio_targets
from core.bench.report.words import facts, headline, interval_note, not_measured
from core.errors import KnownError

HOSTILE = "<script>alert(1)</script>\"'&\x1b[31m\u202e"
VOID = {"meta", "br", "hr", "img", "link", "input"}


def spread(mean):
    return {"mean": mean, "p50": mean * 0.9, "p99": mean * 2.5}


def policy(prefill_s, restore_s=0.0, hit=0.0, **more):
    tiers = {"live": hit * 0.25, "ram": hit * 0.5, "ssd": hit * 0.25}
    return {
        "prefill_s": spread(prefill_s),
        "restore_s": spread(restore_s),
        "ttft_s": spread(prefill_s + restore_s + 0.05),
        "wall_s": spread(prefill_s + restore_s + 1),
        "hit_ratio": hit,
        "hit_ratio_by_tier": tiers,
        "prompt_tokens": 2400.0,
        "prompt_tokens_before_dedup": 2650.0,
        "plan_ms": {"mean": 3.25, "p50": 3.1, "p99": 9.7},
        "gold_logprob_per_token": -2.317,
        "evidence_kept": 0.96,
        "ttft_quantiles": [(prefill_s + restore_s) * (0.5 + n / 20) for n in range(21)],
        **more,
    }


def pair(ratio, difference=0.004, half=0.01):
    return {
        "prefill_ratio": ratio,
        "low": ratio * 0.9,
        "high": ratio * 1.1,
        "logprob_difference": difference,
        "logprob_low": difference - half,
        "logprob_high": difference + half,
    }


@pytest.fixture
def result():
    return {
        "workload": "multi-session",
        "trace": "library_document",
        "model": "SmolLM2-135M-Instruct-Q4_1",
        "machine": {"cpu": "two cores", "memory": "8 GB"},
        "questions": 120,
        "k": 5,
        "seed": 7,
        "date": "2026-11-29",
        "command": "slipstream bench run --workload multi-session --trace library_document",
        "policies": {
            "none": policy(7.94),
            "last-prompt": policy(7.81, hit=0.02),
            "prefix": policy(4.85, 0.06, 0.37),
            "blend:8": policy(0.61, 0.2, 0.9, kl=0.512),
            "contextpilot": policy(2.55, 0.05, 0.61),
            "slipstream": policy(1.84, 0.07, 0.71, ram_bytes=1.25e9, harness_s=0.011),
        },
        "pairs": {
            "slipstream/last-prompt": pair(0.2446),
            "slipstream/prefix": pair(0.389),
            "slipstream/contextpilot": pair(0.7346),
            "blend:8/prefix": pair(0.165, -0.41),
        },
        "bounds": {
            "blocks_seen_before": 0.802,
            "restore_gb_s": 10.2,
            "reuse_online": 0.702,
            "reuse_offline": 0.7464,
            "x": {"y": 0.3},
        },
        "order_sensitivity": {"logprob_sd": 0.031},
        "not_found": ["contextpilot (package)"],
        "notes": ["The machine was otherwise idle."],
    }


class Reader(HTMLParser):
    """Checks that every element is closed where it should be, and collects text and tags."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.text, self.attributes = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def parsed(text):
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ET.fromstring(svg)
    return reader


def words_of(text):
    return " ".join(" ".join(parsed(text).text).split())


def test_the_page_is_well_formed_and_needs_nothing_else(result):
    text = page(result)
    reader = parsed(text)
    assert reader.tags.count("svg") == 5
    assert not {"script", "img", "link", "iframe", "object"} & set(reader.tags)
    assert not [
        name for name, _ in reader.attributes if name in {"src", "href", "style"} or name.startswith("on")
    ]
    assert "url(" not in text.replace("url(#hatch)", "")
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_the_headline_says_the_gain_and_the_answers(result):
    said = headline(read(result))
    assert said == (
        "Reading took 0.24 of the time that keeping only the last prompt needed: 1.91 s instead of 7.81 s a "
        "question. Answers are not worse by more than 0.02 nats a token (measured +0.004)."
    )
    assert said in words_of(page(result))


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (0.9, "took 0.90 of the time"),
        (1.3, "took 1.30 times as long as"),
        (1.02, "neither clearly faster nor slower"),
    ],
)
def test_a_regression_is_not_sold_as_a_gain(result, ratio, said):
    result["pairs"] = {"slipstream/last-prompt": pair(ratio) | {"low": ratio - 0.05, "high": ratio + 0.05}}
    assert said in headline(read(result))


@pytest.mark.parametrize(
    ("difference", "half", "said"),
    [
        (-0.005, 0.01, "not worse by more than 0.02"),
        (-0.005, 0.03, "Whether answers suffer is open"),
        (-0.025, 0.02, "Answers are less likely"),
        (-0.2, 0.05, "Answers are worse"),
    ],
)
def test_what_is_said_of_answers_follows_the_interval(result, difference, half, said):
    result["pairs"]["slipstream/prefix"] = pair(0.4, difference, half)
    assert said in headline(read(result))


def test_a_restarted_program_is_compared_with_a_cold_one(result):
    result["workload"] = "restart"
    result["pairs"]["slipstream/none"] = pair(0.03)
    assert "took 0.030 of the time that reading everything anew needed" in headline(read(result))
    result["policies"]["slipstream"] = policy(0.1, 0.12, 0.98)
    assert ("≤ 0.050", True) in [(one.wanted, one.met) for one in judge(read(result))]


def test_figures_of_the_data_stand_in_the_page_with_their_units(result):
    said = words_of(page(result))
    for figure in (
        "7.94 s", "7.81 s", "4.91 s", "2.60 s", "1.91 s",  # prefill + restore, mean
        "p50 1.76 s", "p99 4.90 s",  # TTFT of slipstream
        "live 18 % · RAM 36 % · SSD 18 % · prefilled 29 %", "2,400 tokens", "250 replaced",
        "0.39", "0.22 to 0.27", "+0.004 nats", "−0.006 to +0.014",
        "3.1 ms", "1.25 GB", "10.2 GB/s", "0.802", "0.702", "0.031", "0.512 nats",
        "120 questions", "k = 5 passages each", "seed 7", "two cores", "2026-11-29", "library_document",
    ):  # fmt: skip
        assert figure in said, figure


def test_bars_are_as_long_as_their_seconds(result):
    text = page(result)
    first = text[text.index("<svg") : text.index("</svg>")]
    widths = [
        float(width)
        for width, colour in re.findall(r'width="([\d.]+)" height="16.0" fill="([^"]+)"', first)
        if colour == COLOURS["prefilled"]
    ]
    seconds = [one["prefill_s"]["mean"] for one in result["policies"].values()]
    assert len(widths) == len(seconds)
    for width, second in zip(widths, seconds, strict=True):
        assert width / widths[0] == pytest.approx(second / seconds[0], abs=0.005)


def test_every_percentage_names_its_base(result):
    told = {label: explanation for label, figure, explanation in facts(read(result)) if "%" in figure}
    assert told == {"Reused": "of 2,400 prompt tokens a question: live 18 %, RAM 36 %, SSD 18 %"}


def test_targets_are_judged_by_the_data(result):
    by_what = {one.what: one for one in judge(read(result))}
    against = by_what["Reading time of slipstream against last-prompt, as a ratio"]
    assert (against.met, against.verdict) == (True, "met; the interval reaches 0.27")
    result["pairs"]["slipstream/prefix"] = pair(0.47)
    result["harness"] = {"other_s_per_question": 0.2}
    verdicts = {one.what: one.verdict for one in judge(read(result)) if not one.met}
    assert verdicts == {
        "Reading time of slipstream against prefix, as a ratio": "missed by 0.070",
        "The harness's own time a question, against the fastest policy's": "missed by 0.16 s",
    }
    assert 'class="missed">missed by 0.070' in page(result)


def test_targets_belong_to_their_workload_and_number_of_passages(result):
    assert ratio_targets(read(result))["last-prompt"] == 0.25
    assert ratio_targets(read(result | {"k": 10})) == {}
    subset = result | {"trace": "library_subset", "command": ""}
    assert ratio_targets(read(subset)) == {"last-prompt": 0.78, "contextpilot": 0.90}
    assert ratio_targets(read(result | {"workload": "batch"})) == {}


def test_a_counted_run_claims_no_time(result):
    counted = result | {"harness": {"counted": True}}
    assert judge(read(counted)) == []
    assert headline(read(counted)).startswith("Counted, not timed")
    assert " s instead of" not in headline(read(counted))
    assert "95 %" not in interval_note(read(counted))


def test_kinds_of_annotation_have_a_line_each(result):
    kinds = {"both": {"difference": 0.012, "low": -0.01, "high": 0.03}, "none": {"difference": 0.0}, "x": 3}
    for made in (page, table):
        text = made(result | {"annotations": {"questions": 7, "kinds": kinds}})
        text = html.unescape(text).replace("\u00a0", " ")
        assert "Annotation: both" in text
        assert "+0.012 nats a token against none" in text
        text = made(result | {"references": {"questions": 2, "kinds": {"shortened": {"difference": -0.02}}}})
        text = html.unescape(text).replace("\u00a0", " ")
        assert "Passages that share text: shortened"[:38] in text
        assert "nats a token against whole ones" in text


def test_time_to_first_token_of_conversations_has_a_target(result):
    result["workload"] = "multi-turn"
    found = [one for one in judge(read(result)) if one.what.startswith("Mean time to first token")]
    assert [(one.measured, one.verdict) for one in found] == [("4.1 times", "met")]
    result["pairs"]["slipstream/none"] = {"ttft_ratio": 0.2, "ttft_low": 0.16, "ttft_high": 0.4}
    found = [one for one in judge(read(result)) if one.what.startswith("Mean time to first token")]
    assert [one.measured for one in found] == ["5.0 times (95 % interval 2.5 to 6.2)"]


def test_bounds_are_named_in_words_and_compared(result):
    lines = table(result).splitlines()
    for words, figure in (
        ("the bound of reusing passages", "0.802"),
        ("question by question", "0.702"),
        ("What knowing all questions in advance would add", "0.044"),
        ("Restoring from RAM", "10.2 GB/s"),
        ("x · y", "0.300"),
    ):
        assert [line.endswith(f" {figure}") for line in lines if words in line] == [True], words


def test_exactness_is_told_and_its_breach_as_well(result):
    result["same_tokens"] = {"differing_prompts": 0, "differing_logits": 0, "compared_logits": 240}
    assert "Exact: policies that change nothing in the prompt" in words_of(page(result))
    result["same_tokens"]["differing_logits"] = 3
    said = words_of(page(result))
    assert "Exact:" not in said
    assert "equal tokens gave other logits for 3 prompts, of 240 compared" in said
    assert "Not exact: 0 prompts" in table(result)


def test_a_quick_run_says_so_and_what_it_cost(result):
    result["harness"] = {"quick": True, "elapsed_s": 640.0, "parking_s": 12.0, "ram_budget_bytes": 1.5e9}
    said = words_of(page(result))
    assert "A quick run: few questions" in said
    assert "missed by 40.0 s" in said
    assert "Time: 640 s in all, 12.0 s spent on changing from policy to policy." in said
    assert "may use 1.5 GB RAM" in said


def test_every_pair_is_drawn_once(result):
    result["pairs"]["prefix/slipstream"] = pair(2.6)
    result["pairs"] = dict(reversed(result["pairs"].items()))
    text = page(result)
    start = text.index("<svg", text.index("Compared in pairs"))
    picture = text[start : text.index("</svg>", start)]
    assert picture.count("against ") == 4
    assert picture.index("slipstream") < picture.index("blend:8")


def test_what_is_approximate_or_was_not_measured_says_so(result):
    del result["policies"]["prefix"]["evidence_kept"]
    said = words_of(page(result))
    assert "≈ blend:8 does not compute what reading the whole prompt computes" in said
    assert "Peer not found, so not compared: contextpilot (package)." in said
    assert "Token F1 of greedy answers: not measured in this run." in said
    assert "Evidence kept: not measured for prefix." in said
    assert "Energy: not measured in this run." in said


@pytest.mark.parametrize(
    "small",
    [
        {},
        {"workload": "storm", "policies": {}},
        {"policies": {"slipstream": {}}},
        {"policies": {"none": {"prefill_s": {"mean": 1.5}}}, "pairs": {"slipstream/none": {}}},
        {"policies": {"none": {"ttft_s": {"p50": 0.0, "p99": 0.0}, "hit_ratio": 0.0}}},
        {"policies": [], "pairs": 3, "bounds": "none", "notes": "one", "machine": None, "questions": "many"},
        {"policies": {"x": {"prefill_s": {"mean": float("nan")}, "hit_ratio": float("inf"), "kl": 10**400}}},
    ],
)
def test_results_with_little_in_them_make_a_page_and_a_table(small):
    said = words_of(page(small))
    assert "Not measured in this run." in said
    assert "This run holds no comparison of reading times." in said
    assert "nan" not in said.split("The data as JSON")[0]
    assert table(small)


def test_without_a_pair_the_means_are_compared_and_no_interval_is_claimed(result):
    del result["pairs"]
    said = words_of(page(result))
    assert "Reading took 0.24 of the time" in said
    assert "What it does to the answers was not measured." in said
    assert "The ratio has no interval" in said


def test_numbers_stay_with_their_units_in_sentences_but_the_data_is_left_as_it_is(result):
    result["notes"] = ["It took 12 s of 8 GB, 5 % slower."]
    text = page(result)
    assert "It took 12\u00a0s of 8\u00a0GB, 5\u00a0% slower." in text
    assert '"It took 12 s of 8 GB, 5 % slower."' in html.unescape(text)


def test_hostile_names_stay_text(result):
    result["policies"][HOSTILE] = policy(3.0, 0.1, 0.3)
    result["pairs"][f"slipstream/{HOSTILE}"] = pair(0.6)
    for name in ("workload", "model", "machine", "date", "command", "trace"):
        result[name] = HOSTILE
    result["bounds"][HOSTILE] = HOSTILE
    result["notes"] = result["not_found"] = [HOSTILE, "\ud800"]
    text = page(result)
    assert "script" not in parsed(text).tags
    assert "<script" not in text
    assert not {"\x1b", "\u202e", "\ud800"} & set(text)
    assert not {"\x1b", "\u202e"} & set(table(result))


@given(st.text(max_size=60))
def test_no_name_breaks_the_page(name):
    text = page({"workload": name, "policies": {name: policy(1.0)}, "pairs": {f"{name}/{name}": pair(0.5)}})
    assert parsed(text).tags.count("svg") == 5


numbers = st.one_of(st.integers(), st.floats(), st.sampled_from([0, 0.02, 1, 1.5, 300]))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(numbers, min_size=21, max_size=21),
        st.fixed_dictionaries({"mean": numbers, "p50": numbers, "p99": numbers}),
        st.dictionaries(st.sampled_from(["mean", "p50", "live", "ram"]), inner, max_size=3),
    ),
    max_leaves=8,
)
policies = st.dictionaries(
    st.sampled_from(["none", "prefix", "slipstream", "blend:8", "a/b"]),
    st.dictionaries(st.sampled_from([*policy(1.0), "kl", "harness_s", "ram_bytes", "approximate"]), values),
)
pairs = st.dictionaries(
    st.sampled_from(["slipstream/prefix", "slipstream/none", "blend:8/prefix", "a/b/none", ""]),
    st.dictionaries(st.sampled_from(list(pair(1.0))), st.one_of(numbers, values)),
)


@settings(max_examples=60, deadline=None)
@given(
    policies,
    pairs,
    st.dictionaries(st.sampled_from(["k", "questions", "bounds", "harness_s", "order_sensitivity"]), values),
)
def test_no_result_breaks_the_report(policies, pairs, more):
    result = {
        "workload": "multi-session",
        "command": "library_document",
        "policies": policies,
        "pairs": pairs,
    }
    said = words_of(page(result | more)).split("The data as JSON")[0]
    assert not re.search(r"\b(nan|inf)\b", said)
    assert max(map(len, table(result | more).splitlines())) <= 110


def test_servers_have_slashes_in_their_names(result):
    server = "server:http://localhost:8080"
    result["policies"][server] = policy(7.0)
    result["pairs"] = {f"{server}/none": pair(0.9), f"slipstream/{server}": pair(0.3)}
    found = [(one.policy, one.baseline) for one in read(result).pairs]
    assert found == [(server, "none"), ("slipstream", server)]


@pytest.mark.parametrize("n_policies", [1, 6, 40])
def test_the_table_keeps_its_width_and_its_rows(result, n_policies):
    result["policies"] |= {
        f"server:http://host-{n}.example/{'x' * n}": policy(10.0**n_policies) for n in range(n_policies)
    }
    result["notes"] = ["word " * 60]
    lines = table(result).splitlines()
    assert max(map(len, lines)) <= 110
    assert [line for line in lines if line != line.rstrip()] == []
    start = next(n for n, line in enumerate(lines) if line.startswith("policy "))
    rows = lines[start + 1 : start + 1 + len(result["policies"])]
    assert [row.split()[0] for row in rows[:3]] == ["none", "last-prompt", "prefix"]


def test_the_table_holds_the_figures_under_their_heads(result):
    lines = table(result).splitlines()
    head = next(line for line in lines if line.startswith("policy "))
    row = next(line for line in lines if line.startswith("slipstream  "))
    assert row.split() == [
        "slipstream", "1.910", "~1.719", "~4.775", "1.764", "4.900", "0.710", "2,650", "2,400", "3.10", "9.70",
        "−2.317", "0.96",
    ]  # fmt: skip
    ends = [match.end() for match in re.finditer(r"\S+", head)][1:]
    assert [match.end() for match in re.finditer(r"\S+", row)][1:] == ends
    assert any(
        re.match(r"slipstream / prefix +0\.39 +0\.35 to 0\.43 +\+0\.004 +−0\.006 to \+0\.014$", one)
        for one in lines
    )
    assert "~ sum of the quantiles of prefill and restore" in lines


def test_exact_quantiles_are_not_marked(result):
    for one in result["policies"].values():
        one["prefill_restore_s"] = spread(one["prefill_s"]["mean"] + one["restore_s"]["mean"])
    assert "~" not in table(result)
    assert "~" not in words_of(page(result)).split("The data as JSON")[0]


def test_missing_figures_are_dashes(result):
    result["policies"] = {"none": {"prefill_s": {"mean": 1.5}}}
    row = next(line for line in table(result).splitlines() if line.startswith("none"))
    assert row.split() == ["none", "1.500", *"–" * 11]


def test_the_data_travels_with_the_page(result):
    inside = re.search(r"<pre>(.*?)</pre>", page(result), re.DOTALL)
    assert inside is not None
    assert json.loads(html.unescape(inside[1])) == result
    result["notes"] = ["x" * 400_000]
    assert "<pre>" not in page(result)


def test_the_file_is_replaced_in_one_step(result, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    write_html(result, path)
    assert path.read_text(encoding="utf-8") == page(result)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert list(tmp_path.iterdir()) == [path]


def test_a_page_that_cannot_be_written_leaves_nothing_behind(result, tmp_path):
    taken = tmp_path / "report.html"
    taken.mkdir()
    for path in (taken, tmp_path / "missing" / "report.html"):
        with pytest.raises(KnownError, match="could not be written") as caught:
            write_html(result, path)
        assert caught.value.hint
    assert list(tmp_path.iterdir()) == [taken]


def test_nothing_is_said_to_be_missing_that_is_there(result):
    for one in result["policies"].values():
        one |= {"f1": 0.2, "index_bytes": 1, "ram_bytes": 1, "energy_j": 3.0}
    result["not_found"] = []
    assert not_measured(read(result)) == []
