import numpy as np
import pytest

from core.engine.embedder import WINDOW_TOKENS, Embedder, EmbedderContext
from core.errors import Cancelled, ModelError


@pytest.fixture
def embedder(tiny_embedder):
    embedder = Embedder(tiny_embedder)
    yield embedder
    embedder.close()


@pytest.fixture
def context(embedder):
    context = EmbedderContext(embedder, 1)
    yield context
    context.close()


def test_vectors_have_length_one_and_do_not_depend_on_company(context):
    texts = ["a b c", "one two three four", "x " * 700]
    vectors, owners = context.passages(texts)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert owners.tolist() == [0, 1] + [2] * (len(owners) - 2)
    for index, text in enumerate(texts):
        alone, _ = context.passages([text])
        assert np.allclose(alone, vectors[owners == index], atol=2e-3)


def test_a_long_text_is_cut_into_even_windows(embedder, context):
    text = "a " * (2 * WINDOW_TOKENS + 1)
    assert len(embedder.tokenize(text)) == 2 * WINDOW_TOKENS + 1
    assert len(context.passages([text])[0]) == 3
    assert len(context.passages([""])[0]) == 1
    assert context.passages([])[0].shape == (0, embedder.n_dims)


def test_others_are_let_go_first_before_each_batch(context):
    calls = []
    context.passages(["a " * 2000], lambda: calls.append(1))
    assert len(calls) > 3

    def stop():
        raise Cancelled

    with pytest.raises(Cancelled):
        context.passages(["a"], stop)
    assert context.query("a").shape == (32,)


def test_a_question_longer_than_the_model_is_cut(context):
    assert np.isfinite(context.query("word " * 5000)).all()


def test_a_chat_model_is_no_embedder(tiny_model):
    with pytest.raises(ModelError, match="needs an embedder"):
        Embedder(tiny_model)


@pytest.mark.parametrize("cut", [10, 5000])
def test_a_damaged_file_is_refused(tiny_embedder, tmp_path, cut):
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(tiny_embedder.read_bytes()[:-cut])
    with pytest.raises(ModelError, match="cut short"):
        Embedder(damaged)


def test_models_that_want_a_prefix_get_it(tiny_embedder, tmp_path):
    other = tmp_path / "multilingual-E5-small.gguf"
    other.write_bytes(tiny_embedder.read_bytes())
    embedder = Embedder(other)
    assert (embedder.query_prefix, embedder.passage_prefix) == ("query: ", "passage: ")
    embedder.close()


@pytest.mark.model
def test_meaning_is_nearer_than_words(real_embedder):
    embedder = Embedder(real_embedder)
    context = EmbedderContext(embedder, 1)
    question = context.query("How do I reset my password?")
    near, far = context.query("I forgot my login credentials"), context.query("How do I bake bread?")
    assert question @ near > 0.5 > question @ far
    context.close()
    embedder.close()
