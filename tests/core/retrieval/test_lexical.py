import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.retrieval.lexical import Fit, Query, Turn, fit, idf, query


def test_own_words_count_fully_and_earlier_ones_less_the_older_they_are():
    found = query(
        "When is it due?",
        [Turn("Who owns the house?"), Turn("How much is the deposit?", "It is 2,400 euros, due in May.")],
    )
    assert found.own == ["due"]
    assert found.weights["deposit"] == 0.4
    assert found.weights["hous"] == pytest.approx(0.16)
    assert found.weights["euro"] == 0.05
    assert found.weights["due"] == 1.0, "what the answer says does not make less of the question"


def test_words_side_by_side_are_pairs_unless_a_stop_word_is_between():
    assert query("the solar system of the sun").pairs == (("solar", "system"),)
    assert query("solar").pairs == ()


def test_a_question_of_stop_words_is_looked_for_as_it_is():
    assert query("to be or not to be").own == ["to", "be", "or", "not"]


def test_a_pasted_page_is_cut():
    assert len(query(" ".join(f"word{n}" for n in range(500))).weights) == 64


def test_no_history_no_more_words():
    assert query("Who owns it?", ()).weights == query("Who owns it?").weights


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_the_rarer_a_word_the_more_it_says(a, b):
    if a < b:
        assert idf(1000, a) > idf(1000, b) > 0


def test_bm25_and_pairs():
    asked = Query({"solar": 1.0, "system": 0.5}, (("solar", "system"),))
    idfs = {"solar": 3.0, "system": 2.0}
    one = fit(asked, idfs, "solar wind", 360)
    assert one.bm25 == pytest.approx(3.0)
    assert one.nearness == pytest.approx(3 / 4)
    apart = fit(asked, idfs, "system of solar", 360)
    assert apart.bm25 == pytest.approx(3.0 + 0.5 * 2.0)
    assert fit(asked, idfs, "the solar system", 360).bm25 == pytest.approx(apart.bm25 + 0.5 * (3.0 + 1.0))
    assert fit(asked, idfs, "solarsystem subsystem", 360) == Fit(0.0, 0.0)
    assert fit(asked, idfs, "solar wind", 100).bm25 > one.bm25


def test_words_in_one_stretch_are_near():
    asked = Query({"solar": 1.0, "system": 1.0}, ())
    idfs = {"solar": 2.0, "system": 2.0}
    assert fit(asked, idfs, "solar " + "x " * 20 + "system", 360).nearness == 1.0
    assert fit(asked, idfs, "solar " + "x " * 200 + "system", 360).nearness == 0.5


def test_a_word_that_follows_itself_is_counted_each_time():
    asked = Query({"had": 1.0}, ())
    assert fit(asked, {"had": 1.0}, "had had", 360).bm25 == fit(asked, {"had": 1.0}, "had x had", 360).bm25


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=40))
def test_more_of_a_word_never_scores_less(words):
    asked = Query({"a": 1.0, "c": 0.4}, ())
    idfs = {"a": 1.0, "c": 2.0}
    text = " ".join(words)
    before, after = fit(asked, idfs, text, 50), fit(asked, idfs, f"{text} b a".strip(), 50)
    assert after.bm25 >= before.bm25
    assert 0 <= before.nearness <= after.nearness <= 1 + 1e-9
