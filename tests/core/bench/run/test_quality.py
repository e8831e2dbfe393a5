"""What is said of a prompt, and that looking leaves no trace."""

import numpy as np
import pytest

from core.bench.run.quality import assess, divergence, evidence_kept, log_softmax, token_f1
from core.bench.run.questions import Asked
from core.config import Settings
from core.engine.probe import ProbingEngine
from core.engine.protocol import CancelFlag


def test_words_in_common():
    assert token_f1("The rent is 900 euros.", "900 Euros") == pytest.approx(4 / 7)
    assert token_f1("nothing", "900") == 0
    assert token_f1("", "") == 0


def test_divergence_of_known_distributions():
    even, sure = np.zeros(2, np.float32), np.log(np.array([0.9, 0.1], np.float32))
    assert divergence(even, even) == 0
    assert divergence(sure, even) == pytest.approx(0.9 * np.log(1.8) + 0.1 * np.log(0.2))
    assert np.exp(log_softmax(sure)).sum() == pytest.approx(1)


def test_evidence_is_text_where_there_is_text_and_blocks_where_not():
    asked = Asked("1", "1", "?", (), evidence=("ten  days", "not there"), gold_blocks=frozenset({"b"}))
    assert evidence_kept(asked, ["within ten\ndays of it"], ["b"]) == (1, 2)
    asked = Asked("1", "1", "?", (), gold_blocks=frozenset({"b", "c"}))
    assert evidence_kept(asked, [], ["a", "b"]) == (1, 2)
    assert evidence_kept(Asked("1", "1", "?", ()), ["text"], ["a"]) == (0, 0)


@pytest.mark.model
def test_looking_leaves_no_trace(tiny_model):
    engine = ProbingEngine(tiny_model, Settings(n_ctx=512))
    try:
        tokens = engine.tokenize("The rent is nine hundred euros a month.", special=False)
        asked = Asked("1", "1", "?", (), answers=("nine hundred euros",))

        def read_on():
            engine.prefill(tokens, len(tokens), CancelFlag())
            return engine.logits().copy()

        engine.prefill(tokens, 0, CancelFlag())
        alone = read_on()
        engine.clear()
        engine.prefill(tokens, 0, CancelFlag())
        logits = log_softmax(engine.logits())
        found = assess(engine, asked, len(tokens), answers=True)
        assert np.array_equal(read_on(), alone)
        assert found.first == int(np.argmax(logits))
        assert found.logprob < 0
        assert 0 <= found.f1 <= 1

        one = Asked("1", "1", "?", (), answers=(engine.token_bytes(int(tokens[-1])).decode(),))
        engine.clear()
        engine.prefill(tokens, 0, CancelFlag())
        expected = log_softmax(engine.logits())[engine.tokenize(one.answers[0], special=False)[0]]
        assert assess(engine, one, len(tokens), answers=False).logprob == pytest.approx(expected)
    finally:
        engine.close()
