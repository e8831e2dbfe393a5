import subprocess
import sys
import threading

import pytest

from core.engine.embedder import Embedder, EmbedderContext
from core.ingest.library import ingest
from core.retrieval.lexical import Turn
from core.retrieval.meaning import Meaning, embed_missing
from core.retrieval.search import Searcher
from core.store.database import open_database
from core.store.documents import DocumentStore
from core.types import Scope

PARAGRAPHS = {
    "rivers.txt": "Rivers carry water to the sea. The Nile is the longest river of Africa.",
    "mountains.txt": "Mountains are high. Kilimanjaro is the highest mountain of Africa.",
    "lease.md": "# Lease\n\nThe tenant pays rent monthly. The deposit is 2,400 euros, due on signing.",
    "chinese.txt": "大型语言模型可以回答问题。黄河是中国的第二长河。",
}


@pytest.fixture
def searcher(tmp_path):
    for name, text in PARAGRAPHS.items():
        (tmp_path / name).write_text(text)
    with open_database(tmp_path / "data") as db:
        ingest(
            [tmp_path / name for name in PARAGRAPHS],
            db,
            cancel=threading.Event(),
            progress=lambda _event: None,
        )
        yield Searcher(db)


def search(searcher, question, **more):
    return searcher.search(question, **{"scope": Scope(), "limit": 8, "token_budget": 2000, **more})


def titles(context):
    return [passage.place.title for passage in context.passages]


def test_the_best_passage_comes_first_with_its_best_sentence(searcher):
    context = search(searcher, "What is the longest river in Africa?")
    assert titles(context) == ["rivers.txt", "mountains.txt"]
    best = context.passages[0]
    assert best.quote == "The Nile is the longest river of Africa."
    assert best.block.text[best.quote_start :].startswith(best.quote)
    assert best.score > context.passages[1].score
    assert context.n_found == 2
    assert context.retrieve_ms > 0


def test_other_scripts(searcher):
    context = search(searcher, "黄河是什么河？")
    assert titles(context) == ["chinese.txt"]
    assert context.passages[0].quote == "黄河是中国的第二长河。"


def test_scope(searcher):
    mountains = search(searcher, "Kilimanjaro").passages[0].place.document_id
    context = search(searcher, "longest river of Africa", scope=Scope(frozenset({mountains})))
    assert titles(context) == ["mountains.txt"]
    assert context.n_found == 1


def test_limit_and_budget_cut_what_was_found(searcher):
    assert len(search(searcher, "Africa", limit=1).passages) == 1
    assert search(searcher, "Africa", limit=1).n_found == 2
    assert search(searcher, "Africa", token_budget=20).n_found == 2
    assert len(search(searcher, "Africa", token_budget=20).passages) == 1
    assert search(searcher, "Africa", token_budget=0).passages == ()
    assert search(searcher, "Africa", limit=0).passages == ()


def test_nothing_asked_or_nothing_there(searcher, tmp_path):
    for question in ("", "  \n", "?!", '" * ('):
        assert search(searcher, question).passages == ()
    with open_database(tmp_path / "empty") as db:
        context = search(Searcher(db), "Africa")
        assert (context.passages, context.n_found) == ((), 0)


def test_a_question_of_stop_words_is_looked_for_as_it_is(searcher):
    assert "rivers.txt" in titles(search(searcher, "what is of"))


def test_a_follow_up_uses_the_conversation(searcher):
    asked = [Turn("How much is the deposit of the lease?")]
    assert search(searcher, "and when is it due?", history=asked).passages[0].place.title == "lease.md"
    assert titles(search(searcher, "Who?", history=asked))[0] == "lease.md"
    own = search(searcher, "What is the highest mountain of Africa?", history=asked)
    assert titles(own)[0] == "mountains.txt"


def test_the_order_does_not_depend_on_when_files_were_added(tmp_path):
    texts = [f"Zebra number {name}." for name in ("one", "two", "six", "ten")]
    orders = []
    for number, order in enumerate((texts, texts[::-1])):
        folder = tmp_path / str(number)
        folder.mkdir()
        with open_database(folder / "data") as db:
            for place, text in enumerate(order):
                (folder / f"{place}.txt").write_text(text)
            ingest([folder], db, cancel=threading.Event(), progress=lambda _event: None)
            orders.append([passage.block.id for passage in search(Searcher(db), "zebra").passages])
    assert orders[0] == orders[1]


def test_a_question_whose_words_stand_nowhere_gets_the_beginnings(searcher):
    context = search(searcher, "Summarize everything")
    assert context.is_opening
    assert len(context.passages) == context.n_found == 4
    mountains = search(searcher, "Kilimanjaro").passages[0].place.document_id
    one = search(searcher, "Summarize everything", scope=Scope(frozenset({mountains})))
    assert titles(one) == ["mountains.txt"]
    assert search(searcher, "Summarize everything", limit=3).passages == (), (
        "four documents are too many for three"
    )
    assert not search(searcher, "Africa").is_opening


def test_a_plural_finds_its_singular(searcher):
    assert titles(search(searcher, "Which leases?")) == ["lease.md"]


def test_what_is_cached_comes_in_only_within_the_margin_and_keeps_its_rank(searcher):
    best, second = search(searcher, "longest river Africa").passages
    cached = {second.block.id}

    def one(margin):
        found = search(searcher, "longest river Africa", limit=1, cached=cached, cache_margin=margin)
        return found.passages[0].block.id

    gap = best.score / second.score - 1
    assert one(0.0) == one(gap * 0.9) == best.block.id
    assert one(gap * 1.1) == second.block.id
    both = search(searcher, "longest river Africa", cached=cached, cache_margin=10.0)
    assert [passage.block.id for passage in both.passages] == [best.block.id, second.block.id]


@pytest.mark.model
def test_what_is_meant_is_found_without_its_words(searcher, real_embedder):
    embedder = Embedder(real_embedder)
    context = EmbedderContext(embedder, 1)
    embed_missing(embedder, context, searcher._db, wait=lambda: None, progress=lambda _n: None)
    meaning = Meaning(embedder, searcher._db)
    searcher = Searcher(searcher._db, meaning)
    assert (
        search(searcher, "How much money must someone renting the flat hand over?").passages[0].place.title
        == "lease.md"
    )
    found = search(searcher, "peaks and summits")
    assert titles(found)[0] == "mountains.txt"
    assert not found.is_opening
    assert search(searcher, "Summarize everything").is_opening
    river = search(searcher, "longest river of Africa").passages[0].place.document_id
    assert titles(search(searcher, "peaks and summits", scope=Scope(frozenset({river})))) == ["rivers.txt"]
    assert search(searcher, "?!").passages == ()
    pasted = [Turn("A question with a page behind it. " + "word " * 3000)]
    assert titles(search(searcher, "peaks and summits", history=pasted))[0] == "mountains.txt"
    for part in (meaning, context, embedder):
        part.close()


def test_a_word_that_was_unknown_is_found_once_a_text_has_it(tmp_path):
    """Rowids are used again: that the highest one is the same does not mean that nothing has changed."""
    for name, text in (("a", "All about lions."), ("b", "All about tigers."), ("c", "All about zebras.")):
        (tmp_path / f"{name}.txt").write_text(text)
    with open_database(tmp_path / "data") as writer, open_database(tmp_path / "data") as reader:
        read = {"cancel": threading.Event(), "progress": lambda _event: None}
        ingest([tmp_path / "a.txt", tmp_path / "b.txt"], writer, **read)
        searcher = Searcher(reader)
        assert search(searcher, "zebras").is_opening
        documents = DocumentStore(writer)
        documents.remove(documents.find_by_path(str(tmp_path / "b.txt")).info.id)
        ingest([tmp_path / "c.txt"], writer, **read)
        assert titles(search(searcher, "zebras")) == ["c.txt"]


def test_searching_by_words_loads_neither_kernels_nor_llama_cpp():
    """At a first start they are compiled in a child process meanwhile; here that would stop the window."""
    code = "import sys, core.retrieval.search; print({'numba', 'llama_cpp'} & set(sys.modules) or '')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
