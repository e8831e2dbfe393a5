"""llama.cpp's state that there is once in a process: its start, and where its log goes."""

import ctypes
import logging
import threading

import llama_cpp

_log = logging.getLogger(__name__)
_WARNING, _ERROR = 3, 4  # ggml_log_level; 5 continues a line

recent_errors: list[str] = []
"""Its last warnings and errors, the newest last: why a file did not load."""


def _route_log(level: int, text: bytes, _data: object) -> None:
    """Llama.cpp's warnings and errors go to our log, the rest nowhere."""
    message = text.decode(errors="replace").rstrip()
    if message and level in (_WARNING, _ERROR):
        _log.warning("llama.cpp: %s", message)
        recent_errors.append(message)
        del recent_errors[:-5]


_log_callback = llama_cpp.llama_log_callback(_route_log)  # llama.cpp keeps the pointer: so must we
_lock = threading.Lock()
_started = False


def start() -> None:
    global _started  # noqa: PLW0603  (llama.cpp's own state is one per process)
    with _lock:
        if not _started:
            llama_cpp.llama_log_set(_log_callback, ctypes.c_void_p(0))
            llama_cpp.llama_backend_init()
            _started = True
