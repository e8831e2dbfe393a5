"""Everything that can go wrong, by what must be done about it.

::

    SlipstreamError
    ├── KnownError              the world is not as we need it: shown, with what to do
    │   ├── ModelError          a GGUF that is missing, damaged, foreign or too large
    │   ├── DocumentError       a file that cannot be read
    │   │   ├── PasswordRequired
    │   │   ├── NoText          it was read and holds no text
    │   │   │   └── NeedsRecognition  its text is an image; recognition was not asked for
    │   │   └── NotRead         reading it did not end: what is known of it stays
    │   │       ├── LimitReached    it took more time or memory than one file may take
    │   │       └── ReaderCrashed   the process that read it died
    │   ├── StoreError          the database: disk full, damaged, newer than this program, in use
    │   ├── SettingsError       a settings file or command line value that makes no sense
    │   ├── PromptTooLong       the question alone does not fit the model's context
    │   └── DamagedState        statistics that were saved make no sense: start with fresh ones
    ├── EngineError             llama.cpp refused; the model context was cleared
    ├── Cancelled               the user stopped it; not a fault
    └── BugError                our own mistake: logged, shown as a bug
"""


class SlipstreamError(Exception):
    """``message`` says what happened and what was kept, ``hint`` what to do, ``details`` the cause."""

    def __init__(self, message: str, *, hint: str = "", details: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class KnownError(SlipstreamError):
    """The world is not as we need it."""


class ModelError(KnownError):
    """A GGUF that is missing, damaged, foreign or too large."""


class DocumentError(KnownError):
    """A file that cannot be read."""


class PasswordRequired(DocumentError):
    """The document is encrypted."""


class NoText(DocumentError):
    """The document was read and holds no text."""


class NeedsRecognition(NoText):
    """The document's text is there as an image only, and its recognition was not asked for."""


class NotRead(DocumentError):
    """Reading the document did not end, which says nothing about what it holds."""


class LimitReached(NotRead):
    """Reading it took more time or memory than one file may take."""


class ReaderCrashed(NotRead):
    """The process that read it died."""


class StoreError(KnownError):
    """The database cannot be used."""


class SettingsError(KnownError):
    """A setting or command line value that makes no sense."""


class PromptTooLong(KnownError):
    """The question does not fit the model's context, even without any passage."""


class DamagedState(KnownError, ValueError):
    """Saved statistics make no sense; nothing was taken over."""


class EngineError(SlipstreamError):
    """llama.cpp refused a call; the model context was cleared."""


class Cancelled(SlipstreamError):
    """The user stopped it."""

    def __init__(self, message: str = "Stopped.") -> None:
        super().__init__(message)


class BugError(SlipstreamError):
    """Our own mistake."""
