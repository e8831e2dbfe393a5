import json

import embedder_gguf
import gguf
import numpy as np
import pytest
from embedder_gguf import ConversionError, convert
from model_files import write_embedder_folder


@pytest.fixture
def source(tmp_path):
    return write_embedder_folder(tmp_path / "source", n_blocks=2)


def test_every_tensor_and_word_piece_arrives(source, tmp_path):
    convert(source, tmp_path / "out.gguf")
    reader = gguf.GGUFReader(tmp_path / "out.gguf")
    assert len(reader.tensors) == 5 + 2 * 16
    assert {tensor.name for tensor in reader.tensors} == set(embedder_gguf.expected_names(2).values())
    pieces = reader.fields["tokenizer.ggml.tokens"].contents()
    assert pieces[101:105] == ["[CLS]", "[SEP]", "[MASK]", "▁a"]
    assert "b" in pieces
    assert "▁b" in pieces
    assert reader.fields["bert.attention.causal"].contents() is False


def test_quantized_weights_are_near_the_real_ones(source, tmp_path):
    convert(source, tmp_path / "out.gguf")
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(tmp_path / "out.gguf").tensors}
    real = embedder_gguf.read_safetensors(source / "model.safetensors")
    found = tensors["blk.0.attn_q.weight"]
    wanted = real["encoder.layer.0.attention.self.query.weight"]
    assert np.abs(gguf.quants.dequantize(found.data, found.tensor_type) - wanted).max() < 0.01
    bias = tensors["blk.1.ffn_up.bias"].data
    assert np.array_equal(bias, real["encoder.layer.1.intermediate.dense.bias"])


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "config.json").write_text("{"), "config.json cannot be read"),
        (lambda folder: (folder / "config.json").write_text('{"model_type": "gpt2"}'), "not a BERT"),
        (lambda folder: (folder / "vocab.txt").write_text("[PAD]\n"), "word pieces"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"\x01"), "damaged"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_left(source, tmp_path, damage, message):
    damage(source)
    with pytest.raises(ConversionError, match=message):
        convert(source, tmp_path / "out.gguf")
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_a_missing_layer_is_named(source, tmp_path):
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    with pytest.raises(ConversionError, match=r"lacks 16 tensors.*layer\.2"):
        convert(source, tmp_path / "out.gguf")
