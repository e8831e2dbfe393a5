import threading
import time

import numpy as np
import pytest

from core.config import Settings
from core.embedding import Embedding
from core.ingest.library import ingest
from core.store.database import open_database
from core.types import EmbeddingProgress


@pytest.fixture
def data_dir(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(40):
        (folder / f"{number}.txt").write_text(f"Text number {number}. " + "word " * 300)
    with open_database(tmp_path / "data") as db:
        ingest([folder], db, cancel=threading.Event(), progress=lambda _: None)
    return tmp_path / "data"


class Listener:
    def __init__(self):
        self.told: list[EmbeddingProgress] = []
        self.errors = []
        self.done = threading.Event()

    def tell(self, event):
        self.told.append(event)
        if event.n_done == event.n_blocks > 0:
            self.done.set()


def open_embedding(data_dir, listener, embedder, rests=lambda: False, **settings):
    chosen = Settings(embedder=str(embedder), **settings)
    return Embedding(
        data_dir,
        chosen,
        rests=rests,
        ready=lambda: None,
        tell=listener.tell,
        report=listener.errors.append,
    )


def n_vectors(data_dir):
    with open_database(data_dir) as db:
        return db.row("SELECT count(*) FROM block_vectors")[0]


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_all_blocks_get_vectors_and_a_question_finds_them(data_dir, tiny_embedder):
    listener = Listener()
    embedding = open_embedding(data_dir, listener, tiny_embedder)
    assert listener.done.wait(60)
    n_blocks = listener.told[-1].n_blocks
    assert n_vectors(data_dir) == n_blocks
    assert listener.told[-1].blocks_per_s > 0
    with open_database(data_dir) as db:
        meaning = embedding.meaning(db)
        assert len(meaning.nearest({"text": 1.0}, 5, None, np.empty(0, np.int64))) == 5
        meaning.close()
    embedding.close()
    assert listener.errors == []


def test_it_rests_while_something_is_asked_and_goes_on(data_dir, tiny_embedder):
    listener, asked = Listener(), threading.Event()
    asked.set()
    embedding = open_embedding(data_dir, listener, tiny_embedder, rests=asked.is_set)
    time.sleep(0.3)
    assert n_vectors(data_dir) == 0
    asked.clear()
    assert listener.done.wait(60)
    embedding.close()


def test_closed_in_the_middle_it_goes_on_where_it_stopped(data_dir, tiny_embedder):
    first, second = Listener(), Listener()
    steps = []

    def rests():
        steps.append(1)
        return len(steps) > 45  # from then on for ever

    embedding = open_embedding(data_dir, first, tiny_embedder, rests=rests)
    wait_for(lambda: len(steps) > 46)
    embedding.close()
    n_before = n_vectors(data_dir)
    assert n_before > 0
    assert not first.done.is_set()
    embedding = open_embedding(data_dir, second, tiny_embedder)
    assert second.done.wait(60)
    embedding.close()
    assert n_vectors(data_dir) == second.told[-1].n_blocks > n_before


def test_new_documents_are_taken_up_when_woken(data_dir, tiny_embedder, tmp_path):
    listener = Listener()
    embedding = open_embedding(data_dir, listener, tiny_embedder)
    assert listener.done.wait(60)
    listener.done.clear()
    (tmp_path / "new.txt").write_text("A new text.")
    with open_database(data_dir) as db:
        ingest([tmp_path / "new.txt"], db, cancel=threading.Event(), progress=lambda _: None)
    embedding.wake()
    assert listener.done.wait(60)
    embedding.close()


def test_switched_off_nothing_is_loaded(data_dir, tiny_embedder):
    listener = Listener()
    embedding = open_embedding(data_dir, listener, tiny_embedder, find_by_meaning="off")
    embedding.wake()
    embedding.close()
    with open_database(data_dir) as db:
        assert embedding.meaning(db) is None
    assert n_vectors(data_dir) == 0


def test_a_file_that_is_no_embedder_is_reported_and_words_still_work(data_dir, tiny_model):
    listener = Listener()
    embedding = open_embedding(data_dir, listener, tiny_model)
    wait_for(lambda: listener.errors)
    assert "embedder" in listener.errors[0].message
    with open_database(data_dir) as db:
        assert embedding.meaning(db) is None
    embedding.close()


def test_another_embedder_takes_over_at_once_and_drops_what_the_first_made(data_dir, tiny_embedder, tmp_path):
    listener = Listener()
    embedding = open_embedding(data_dir, listener, tiny_embedder)
    wait_for(lambda: n_vectors(data_dir) > 0)  # it is in the middle
    other = tmp_path / "e5.gguf"
    other.write_bytes(tiny_embedder.read_bytes() + bytes(32))
    listener.done.clear()
    embedding.change(Settings(embedder=str(other)))
    assert listener.done.wait(60)
    with open_database(data_dir) as db:
        assert db.row("SELECT count(DISTINCT embedder_id) FROM block_vectors") == (1,)
    embedding.change(Settings(find_by_meaning="off"))
    with open_database(data_dir) as db:
        assert embedding.meaning(db) is None
    embedding.close()
    assert listener.errors == []


def test_switched_off_before_it_is_loaded_it_stays_off(data_dir, tiny_embedder, monkeypatch):
    listener, go_on = Listener(), threading.Event()
    monkeypatch.setattr("core.embedding.jit.ensure_compiled", lambda _stop: go_on.wait(20))
    embedding = open_embedding(data_dir, listener, tiny_embedder)
    embedding.change(Settings(find_by_meaning="off"))
    go_on.set()
    time.sleep(0.3)
    with open_database(data_dir) as db:
        assert embedding.meaning(db) is None
    embedding.close()
    assert n_vectors(data_dir) == 0


def test_a_wake_that_waits_does_not_keep_the_next_embedder_from_its_work(data_dir, tiny_embedder, tmp_path):
    listener = Listener()
    embedding = open_embedding(data_dir, listener, tiny_embedder)
    wait_for(lambda: n_vectors(data_dir) > 0)
    embedding.wake()  # as at the end of a reading, while it embeds
    other = tmp_path / "nomic.gguf"
    other.write_bytes(tiny_embedder.read_bytes())
    listener.done.clear()
    embedding.change(Settings(embedder=str(other)))
    assert listener.done.wait(60)
    embedding.close()
    with open_database(data_dir) as db:
        assert db.row("SELECT count(DISTINCT embedder_id) FROM block_vectors") == (1,)
