import pytest
from word_search import texts_with

from core.store.documents import DocumentStore, NewBlock, NewDocument
from core.store.full_text import candidates, frequency, stems
from core.text import content_terms
from core.types import Block, Scope

TEXTS = (
    "大型语言模型可以回答问题。",
    "日本語のテキストを検索する。",
    "한국어 문서를 검색합니다.",
    "الذَّكاءُ الاصطناعيّ يغيّر العالم.",
    "Le café est situé près de la gare.",
    "def getUserName(user_id): return cache.get_name(user_id)",
    'He said "unbalanced and left.',
)


@pytest.fixture
def filled(db):
    store = DocumentStore(db)
    for number, text in enumerate(TEXTS):
        store.save(
            NewDocument(f"/{number}", str(number), blocks=(NewBlock(Block.of(text), 0, len(text), 9),))
        )
    return db


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("模型", 0),
        ("语言模型是什么？", 0),
        ("検索", 1),
        ("문서", 2),
        ("الذكاء الاصطناعي", 3),
        ("cafe", 4),
        ("CAFÉ situe", 4),
        ("getUserName", 5),
        ("user name", 5),
        ("get_name", 5),
        ('"unbalanced', 6),
        ('said" OR NOT ( * ^ text:', 6),
    ],
)
def test_any_script_and_any_punctuation(filled, question, found):
    assert texts_with(filled, content_terms(question))[0] == TEXTS[found]


def test_scope_and_limit(filled):
    ids = {text: number for number, text in enumerate(TEXTS, start=1)}
    wanted = ["cafe", "模型"]
    assert len(texts_with(filled, wanted)) == 2
    assert len(texts_with(filled, wanted, limit=1)) == 1
    only = Scope(frozenset({ids[TEXTS[4]]}))
    assert texts_with(filled, wanted, only) == [TEXTS[4]]
    assert texts_with(filled, []) == []
    assert len(texts_with(filled, wanted, Scope(frozenset(range(1, 5000))))) == 2


def test_what_is_indexed_and_how_often_it_stands(filled):
    assert stems("The causes caused leases") == ["the", "caus", "caus", "leas"]
    assert frequency(filled, stems("situated")[0]) == 0
    assert frequency(filled, "cafe") == 1


def test_common_words_are_left_out_where_rare_ones_are_there(filled):
    """A word in every block says nothing and costs most; alone it is looked for all the same."""
    many = 1_000_000
    rare = candidates(filled, [("cafe", 1), ("模型", many)], Scope(), 9)
    assert len(rare) == 1
    assert len(candidates(filled, [("模型", many)], Scope(), 9)) == 1
    assert candidates(filled, [("nowhere", 0)], Scope(), 9) == []
