"""Annotations speak the language of the question."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.plan.annotate import annotation, annotation_of_whole
from core.plan.phrases import _PHRASES, ENGLISH, language_of, phrases_for
from core.types import Block, Passage, Place


def passage(number, title="a {0} {name}.txt"):
    return Passage(Block.of(f"Text {number}."), (Place(1, title, "/a", number, 0, 1, None),), 1.0, "", 0)


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("How long is the notice period?", "en"),
        ("Wie lang ist die Kündigungsfrist?", "de"),
        ("Quelle est la durée du préavis ?", "fr"),
        ("¿Cuál es el plazo de preaviso?", "es"),
        ("Qual è il termine di preavviso?", "it"),
        ("Qual é o prazo de aviso prévio?", "pt"),
        ("Hoe lang is de opzegtermijn?", "nl"),
        ("Какой срок уведомления?", "ru"),
        ("通知期是多长？", "zh"),
        ("通知期間はどのくらいですか？", "ja"),
        ("통지 기간은 얼마나 됩니까?", "ko"),
        ("ما هي مدة الإشعار؟", "ar"),
        ("What does 合同 mean in clause four of the agreement?", "en"),
        ("notice period", "en"),
        ("Summarize section 5 as bullet points", "en"),
        ("Explain Article 5 as amended", "en"),
        ("Rent per month?", "en"),
        ("Compare revenue per region", "en"),
        ("Explain die casting", "en"),
        ("List no-smoking rules", "en"),
        ("Explain LA zoning", "en"),
        ("Vad är en uppsägningstid?", "en"),
        ("Який термін повідомлення?", "en"),
        ("مدت اعلام چقدر است؟", "en"),
        ("Welche Frist gilt?", "de"),
        ("Kündigungsfrist?", "en"),
        ("¿Cuánto cuesta? ¿Quién paga?", "es"),
        ("?!", "en"),
        ("", "en"),
    ],
)
def test_the_language_of_a_question(question, language):
    assert language_of(question) == language


@pytest.mark.parametrize("language", sorted(_PHRASES))
def test_every_language_says_all_of_it_and_names_every_label(language):
    one, two = passage(1), passage(2)
    said = annotation((one, two), (two,), moved=True, phrases=_PHRASES[language])
    assert len(said.splitlines()) == 3
    assert said.count(one.block.label) == 2
    assert said.count(two.block.label) == 3
    assert said.count("a {0} {name}.txt") == 1
    whole = annotation_of_whole((one,), (two,), phrases=_PHRASES[language])
    assert "a {0} {name}.txt" in whole
    assert two.block.label in whole


@given(st.text())
def test_any_question_has_phrases(question):
    assert phrases_for(question) in _PHRASES.values()
    assert phrases_for("") is ENGLISH
