"""Settings (TOML) and where things are kept.

``Settings`` holds what a user may change; every field carries its unit in its name and its meaning in
its docstring. Unknown keys in the file are refused by name, so that a typing error is not silence.
"""

import dataclasses
import os
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs
import psutil
import tomli_w

from core.errors import SettingsError

APP_NAME = "slipstream"
SETTINGS_FILE = "settings.toml"
DATABASE_FILE = "slipstream.db"


def sample_documents() -> Path | None:
    """The sample documents that come with the program: in the bundle, or in the checkout."""
    base = Path(getattr(sys, "_MEIPASS", Path(__file__).parent.parent))
    folder = base / "assets" / "samples"
    return folder if folder.is_dir() else None


def default_data_dir() -> Path:
    return Path(platformdirs.user_data_dir(APP_NAME, appauthor=False))


@dataclass(frozen=True, slots=True)
class Settings:
    model: str = ""
    """Path of the GGUF last used; empty for the embedded model."""
    n_ctx: int = 8192
    """Model context in tokens; the model's own limit if that is smaller."""
    n_threads: int = 0
    """0: the number of physical cores."""
    n_gpu_layers: int = -1
    """-1: all layers where the library supports offload."""
    answer_tokens: int = 256
    """Room kept for an answer, in tokens."""
    passages: int = 8
    """At most so many passages for one question."""
    find_by_meaning: str = "auto"
    """Whether passages are also found by meaning: ``on``, ``off``, or ``auto``: not on weak machines."""
    embedder: str = ""
    """Path of a GGUF embedder, for other languages than English; empty for the embedded one."""
    prefer_cached: float = 0.0
    """A cached passage is taken before one that is better by less than this share of its score; 0: never."""
    passage_tokens: int = 2048
    """Budget for the passages of one question, in tokens."""
    dedup: str = "content"
    """What a prompt does not repeat: ``blocks`` it holds, also ``content`` of other blocks; or ``off``.

    ``auto`` decides for each question whether passages are moved and shortened, by what that saves and risks.
    """
    first_word_s: float = 0.0
    """Seconds after which an answer should begin: passages that would take longer to read are left out, the
    least relevant first, and one is read in part. 0: no limit."""
    kv_type: str = "f16"
    """How the KV cache is kept: ``f16``, or ``q8_0`` for half the memory at slower prefill."""
    idle_work: bool = True
    """Prepare for the next question while nobody waits and the machine is on mains power."""
    ram_cache_mb: int = -1
    """Budget of the RAM tier in megabytes; 0 switches it off, -1 leaves it to Slipstream."""
    ssd_cache_mb: int = -1
    """Budget of the SSD tier in megabytes; 0 switches it off, -1 leaves it to Slipstream."""
    ssd_daily_write_mb: int = 20_000
    """The SSD tier writes at most so much a day, to spare the disk."""
    temperature: float = 0.0
    top_p: float = 0.95
    seed: int = 0
    theme: str = "system"
    """``system``, ``light`` or ``dark``."""
    text_scale: float = 1.0
    kiosk_idle_s: int = 120
    """Seconds without input after which the kiosk clears the conversation."""

    def __post_init__(self) -> None:
        limits: dict[str, tuple[float, float]] = {
            "n_ctx": (512, 1 << 20),
            "n_threads": (0, 1024),
            "n_gpu_layers": (-1, 10_000),
            "answer_tokens": (1, 1 << 16),
            "passages": (0, 200),
            "first_word_s": (0.0, 3600.0),
            "passage_tokens": (0, 1 << 20),
            "prefer_cached": (0.0, 1.0),
            "ram_cache_mb": (-1, 1 << 30),
            "ssd_cache_mb": (-1, 1 << 30),
            "ssd_daily_write_mb": (0, 1 << 30),
            "temperature": (0.0, 5.0),
            "top_p": (0.01, 1.0),
            "text_scale": (0.5, 3.0),
            "kiosk_idle_s": (5, 86_400),
        }
        for name, (low, high) in limits.items():
            value = getattr(self, name)
            if not low <= value <= high:
                raise SettingsError(f"The setting {name} is {value}; it must be between {low} and {high}.")
        if self.kv_type not in ("f16", "q8_0"):
            raise SettingsError(f"The setting kv_type is {self.kv_type!r}; it must be f16 or q8_0.")
        if self.dedup not in ("auto", "blocks", "content", "off"):
            raise SettingsError(
                f"The setting dedup is {self.dedup!r}; it must be auto, blocks, content or off."
            )
        if self.find_by_meaning not in ("auto", "on", "off"):
            raise SettingsError(
                f"The setting find_by_meaning is {self.find_by_meaning!r}; it must be auto, on or off."
            )
        if self.theme not in ("system", "light", "dark"):
            raise SettingsError(f"The setting theme is {self.theme!r}; it must be system, light or dark.")

    @property
    def reading(self) -> dict[str, Any]:
        """Those that say how passages are read; a running program can change them."""
        return {"first_word_s": self.first_word_s, "dedup": self.dedup, "idle_work": self.idle_work}

    def with_(self, **changes: Any) -> "Settings":
        return dataclasses.replace(self, **changes)


@dataclass(frozen=True, slots=True)
class WindowOptions:
    """What the window is opened with."""

    data_dir: Path
    settings: Settings
    kiosk: bool = False
    samples: Path | None = None
    """Folder of sample documents to put into a library that is still empty."""


@dataclass(frozen=True, slots=True)
class CacheBudgets:
    """Bytes for each tier of the prefix cache."""

    ram: int
    ssd: int
    ssd_daily: int


def cache_budgets(settings: Settings, data_dir: Path, model_bytes: int) -> CacheBudgets:
    """One budget for the machine: what model and context leave is shared with everything else that runs.

    By default RAM gets a quarter of what the model leaves, at most 8 GiB (on a Mac or a Jetson the GPU's
    memory is the same memory); the SSD a tenth of the free disk, at most 16 GiB.
    """
    total = psutil.virtual_memory().total
    ram = (
        settings.ram_cache_mb * 10**6
        if settings.ram_cache_mb >= 0
        else min((total - model_bytes) // 4, 8 << 30)
    )
    ssd = settings.ssd_cache_mb * 10**6
    if settings.ssd_cache_mb < 0:
        try:
            ssd = min(psutil.disk_usage(str(data_dir)).free // 10, 16 << 30)
        except OSError:
            ssd = 0
    return CacheBudgets(max(0, ram), max(0, ssd), settings.ssd_daily_write_mb * 10**6)


def load_settings(data_dir: Path) -> Settings:
    """Settings from ``data_dir``, or the defaults where there is no file.

    Raises SettingsError for a file that is no TOML, has unknown names, or values out of range.
    """
    path = data_dir / SETTINGS_FILE
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Settings()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(
            f"The settings file {path} cannot be read.",
            hint="Correct it, or delete it to start with the defaults.",
            details=str(error),
        ) from error
    fields = {field.name: field for field in dataclasses.fields(Settings)}
    for name, value in raw.items():
        if name not in fields:
            raise SettingsError(
                f"The settings file {path} has an unknown setting {name!r}.", hint="Remove it."
            )
        wanted = type(fields[name].default)
        if not (type(value) is wanted or (wanted is float and type(value) is int)):
            raise SettingsError(f"The setting {name} in {path} must be a {wanted.__name__}, not {value!r}.")
    return Settings(**raw)


def save_settings(data_dir: Path, settings: Settings) -> None:
    """Write the settings that differ from the defaults; replaced in one step, mode 0600."""
    make_private_dir(data_dir)
    defaults = Settings()
    changed = {
        field.name: getattr(settings, field.name)
        for field in dataclasses.fields(Settings)
        if getattr(settings, field.name) != getattr(defaults, field.name)
    }
    path = data_dir / SETTINGS_FILE
    temporary = path.with_suffix(".tmp")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            tomli_w.dump(changed, file)
        temporary.replace(path)
    except OSError as error:
        raise SettingsError(f"The settings could not be saved to {path}.", details=str(error)) from error


def make_private_dir(path: Path) -> None:
    """Create ``path`` for this user only. Raises SettingsError where that is impossible."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise SettingsError(
            f"The data folder {path} cannot be created.",
            hint="Choose another one with --data-dir.",
            details=str(error),
        ) from error
