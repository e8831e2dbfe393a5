import pytest

from core.store.documents import DocumentStore, NewBlock, NewDocument
from core.store.full_text import match
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
    assert match(filled, content_terms(question), Scope(), 3)[0].text == TEXTS[found]


def test_scope_and_limit(filled):
    ids = {text: number for number, text in enumerate(TEXTS, start=1)}
    wanted = ["cafe", "模型"]
    assert len(match(filled, wanted, Scope(), 9)) == 2
    assert len(match(filled, wanted, Scope(), 1)) == 1
    only = Scope(frozenset({ids[TEXTS[4]]}))
    assert [found.text for found in match(filled, wanted, only, 9)] == [TEXTS[4]]
    assert match(filled, [], Scope(), 9) == []
    assert len(match(filled, wanted, Scope(frozenset(range(1, 5000))), 9)) == 2
