"""Bad model files are refused before llama.cpp sees them, with a reason and what to do."""

import model_files as made
import pytest

from core.engine import model_files
from core.errors import ModelError

pytestmark = pytest.mark.model


def test_a_good_header_is_read(embedded_model):
    header = model_files.check_model(embedded_model)
    assert header.architecture == "llama"
    assert header.n_layers == 30
    assert header.n_ctx_train == 8192
    assert header.kv_bytes_per_token == 23_040
    assert header.size == embedded_model.stat().st_size


def test_the_embedded_model_is_found_without_importing_its_package(embedded_model):
    assert model_files.embedded_model() == embedded_model
    assert model_files.choose_model("") == embedded_model


def damaged(kind, source, folder):
    target = folder / "model.gguf"
    if kind == "folder":
        return folder
    if kind != "missing":
        make = getattr(made, kind)
        if kind in ("foreign", "empty"):
            make(target)
        else:
            make(source, target)
    return target


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("missing", "does not exist"),
        ("folder", "is a folder"),
        ("empty", "damaged"),
        ("foreign", "not a GGUF"),
        ("truncated", "cut short: 1,000 of"),
        ("truncated_in_header", "damaged"),
        ("absurd_tensor_count", "damaged"),
    ],
)
def test_a_bad_file_is_refused_with_the_reason(kind, says, tiny_model, tmp_path):
    with pytest.raises(ModelError, match=says) as caught:
        model_files.check_model(damaged(kind, tiny_model, tmp_path))
    assert "Traceback" not in str(caught.value)


def test_any_cut_of_the_header_is_refused(tiny_model, tmp_path):
    data = tiny_model.read_bytes()
    target = tmp_path / "cut.gguf"
    for n in [*range(40), 100, 1000, 50_000, len(data) // 2, len(data) - 1]:
        target.write_bytes(data[:n])
        with pytest.raises(ModelError):
            model_files.check_model(target)


def test_a_model_larger_than_the_machine_is_refused(tiny_model, monkeypatch):
    monkeypatch.setattr(model_files, "total_memory", lambda: 1000)
    with pytest.raises(ModelError, match="this machine has"):
        model_files.check_model(tiny_model)


def test_fingerprints_tell_files_apart(tiny_model, embedded_model, tmp_path):
    copy = tmp_path / "copy.gguf"
    data = bytearray(tiny_model.read_bytes())
    copy.write_bytes(data)
    assert model_files.file_fingerprint(copy) == model_files.file_fingerprint(tiny_model)
    data[-10] ^= 1
    copy.write_bytes(data)
    assert model_files.file_fingerprint(copy) != model_files.file_fingerprint(tiny_model)
    assert model_files.file_fingerprint(embedded_model) != model_files.file_fingerprint(tiny_model)
