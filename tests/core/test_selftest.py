import pytest

from core import selftest
from core.config import Settings
from core.errors import SlipstreamError

pytestmark = pytest.mark.model


def test_it_passes_and_says_what_took_how_long(capsys, tiny_model):
    assert selftest.run(Settings(model=str(tiny_model), passages=3, passage_tokens=600)) == 0
    out = capsys.readouterr().out
    for step in ("database", "kernels and model", "ingest", "first question", "same question again", "close"):
        assert step in out
    assert out.endswith("selftest passed\n")


def test_it_fails_where_a_step_does(capsys, tmp_path, monkeypatch, tiny_model):
    settings = Settings(model=str(tiny_model), passages=2, passage_tokens=600)
    with pytest.raises(SlipstreamError, match="does not exist"):
        selftest.run(settings.with_(model=str(tmp_path / "missing.gguf")))
    monkeypatch.setattr("core.engine.prefix_cache.PrefixCache._n_live", lambda *_: 0)
    monkeypatch.setattr("core.engine.prefix_cache.PrefixCache._restore", lambda *_: None)
    with pytest.raises(SlipstreamError, match="more than the last chunk"):
        selftest.run(settings)
    assert "selftest passed" not in capsys.readouterr().out
