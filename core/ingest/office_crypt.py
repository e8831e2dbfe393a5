"""Office files behind a password: the plain .docx, .pptx or .xlsx inside, with msoffcrypto."""

from io import BytesIO

from core.errors import DocumentError
from core.ingest.archive import damaged
from core.ingest.extracted import password_required


def decrypted(data: bytes, password: str) -> bytes:
    """Raises PasswordRequired without the right password, DocumentError for what cannot be opened at all."""
    if not password:
        raise password_required("Office file", password)
    from msoffcrypto.exceptions import DecryptionError, InvalidKeyError
    from msoffcrypto.format.ooxml import OOXMLFile

    out = BytesIO()
    try:
        file = OOXMLFile(BytesIO(data))
        file.load_key(password=password, verify_password=True)
        file.decrypt(out)
    except InvalidKeyError as error:
        raise password_required("Office file", password) from error
    except DecryptionError as error:
        raise DocumentError(
            "This Office file is protected in a way that Slipstream cannot open.",
            hint="Open it in its program, save a copy without a password, and add the copy.",
            details=str(error),
        ) from error
    except (MemoryError, RecursionError):
        raise
    except Exception as error:  # the container's parser raises whatever it stumbles over
        raise damaged(error) from error
    return out.getvalue()
