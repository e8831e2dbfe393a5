from email.message import EmailMessage
from pathlib import Path

import pytest

from core.errors import DocumentError
from core.ingest.readers import extract


@pytest.fixture
def message():
    made = EmailMessage()
    made["From"], made["To"] = "Ada <ada@example.com>", "Bob <bob@example.com>"
    made["Subject"] = "Prüfung 模型"
    return made


def read(message):
    return extract(Path("a.eml"), message if isinstance(message, bytes) else message.as_bytes())


def test_headers_the_plain_body_and_names_of_attachments(message):
    message.set_content("The plain text.")
    message.add_alternative("<p>The marked text.</p>", subtype="html")
    message.add_attachment(b"data", maintype="application", subtype="pdf", filename="Zürich.pdf")
    found = read(message)
    assert found.text == (
        "From: Ada <ada@example.com>\nTo: Bob <bob@example.com>\nSubject: Prüfung 模型\n"
        "Attachments: Zürich.pdf\n\nThe plain text."
    )
    assert found.note.startswith("1 attachment was not read")


def test_html_alone_and_a_forwarded_message(message):
    inner = EmailMessage()
    inner["From"], inner["Subject"] = "Cy <cy@example.com>", "Inner"
    inner.set_content("<table><tr><td>Ada<td>9100</table>", subtype="html", charset="latin-1")
    message.set_content("See below.")
    message.add_attachment(inner)
    assert read(message).text.endswith(
        "See below.\n\nFrom: Cy <cy@example.com>\nSubject: Inner\n\nAda | 9100"
    )


def test_odd_mail(survives, message):
    survives("a.eml", message.as_bytes() + b"text")
    assert (
        "caf"
        in read(
            b"Subject: x\nContent-Type: text/plain; charset=no-such\n\ncaf\xe9 au lait, s'il vous pla\xeet"
        ).text
    )
    assert read(b"Just a text that is called mail.").media_type == "text/plain"
    deep = b"".join(b'Content-Type: multipart/mixed; boundary="%d"\n\n--%d\n' % (n, n) for n in range(2000))
    with pytest.raises(DocumentError):
        read(b"From: a\n" + deep)


def test_headers_of_all_sorts():
    assert read(b"Subject: caf\xe9 =?utf-8?q?=C3=A4?= =?no-such?q?x?=\n\ntext").text.startswith(
        "Subject: caf\xe9"
    )
    assert read("Subject: Prüfung\n\ntext".encode()).text == "Subject: Prüfung\n\ntext"
    assert (
        read(b"Subject: =?utf-8?b?5qih5Z6L?=\n =?utf-8?b?5qih5Z6L?=\n\ntext").text
        == "Subject: 模型模型\n\ntext"
    )
    long = read(b"Subject: " + b"=?utf-8?b?w6Q=?= " * 100_000 + b"\n\ntext")
    assert len(long.text) < 20_000
