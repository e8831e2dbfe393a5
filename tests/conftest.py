"""What every test gets: no screen, no access to the user's own files, real models where installed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import model_files
import platformdirs
import pytest

from core.engine.model_files import embedded_embedder

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
# Compiled kernels stay in the user's real cache, named before HOME changes: compiling takes seconds.
os.environ.setdefault(
    "NUMBA_CACHE_DIR", str(Path(platformdirs.user_cache_dir("slipstream", appauthor=False)) / "kernels")
)

hypothesis.settings.register_profile("default", deadline=None, print_blob=True)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "default")

HOME_VARIABLES = {
    "HOME": "",
    "XDG_DATA_HOME": ".local/share",
    "XDG_CONFIG_HOME": ".config",
    "XDG_CACHE_HOME": ".cache",
    "XDG_STATE_HOME": ".local/state",
    "XDG_RUNTIME_DIR": "run",
}


def _live_in(home: Path) -> None:
    for name, folder in HOME_VARIABLES.items():
        path = home / folder
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.environ[name] = str(path)


@pytest.fixture(scope="session", autouse=True)
def _session_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fixtures that live longer than one test are kept from the user's files as well."""
    before = {name: os.environ.get(name) for name in HOME_VARIABLES}
    _live_in(tmp_path_factory.mktemp("session-home"))
    yield
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home of the test's own, empty: what one test keeps, no other finds."""
    before = {name: os.environ[name] for name in HOME_VARIABLES}
    path = tmp_path_factory.mktemp("home")
    _live_in(path)
    yield path
    os.environ.update(before)


@pytest.fixture(scope="session")
def embedded_model() -> Path:
    """SmolLM2-135M-Instruct, 98 MB: a real model, 0.1 s to load, 170 prompt tokens/s on two cores."""
    path = model_files.embedded_model_path()
    if path is None:
        pytest.skip(
            f"the embedded model's package {model_files.PACKAGE} is not installed (make test installs it)"
        )
    return path


@pytest.fixture(scope="session")
def tiny_model(embedded_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2 cut down to its first two layers: runs ten times faster and talks nonsense."""
    return model_files.cut_down(embedded_model, tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.fixture(scope="session")
def real_embedder() -> Path:
    """all-MiniLM-L6-v2, 25 MB, 2,800 tokens/s on one core."""
    path = embedded_embedder()
    if path is None:
        pytest.skip("the embedder was not made (make test makes it)")
    return path


@pytest.fixture(scope="session")
def tiny_embedder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of one layer with random weights, through the converter that makes the real one."""
    folder = tmp_path_factory.mktemp("embedder")
    converter = Path(__file__).parent.parent / "packaging" / "embedder_gguf.py"
    source = model_files.write_embedder_folder(folder / "source")
    subprocess.run([sys.executable, converter, source, folder / "tiny.gguf"], check=True)
    return folder / "tiny.gguf"
