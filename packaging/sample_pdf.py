"""Writes the sample PDF, ``assets/samples/travel-policy.pdf``: text pages and nothing else.

A PDF is a few numbered objects and a table of where they begin; for lines of text in a built-in font no
library is needed. Run it after changing the text below: ``python packaging/sample_pdf.py``.
"""

import textwrap
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "assets" / "samples" / "travel-policy.pdf"
WIDTH_PT, HEIGHT_PT, MARGIN_PT = 595, 842, 64
LEADING_PT = 15
LINE_CHARACTERS = 90

PAGES = (
    """
# Lanternfish Software: travel and expense policy

A sample document that came with Slipstream. The company is invented. Version 4, in force from 1 January
2026.

## 1. Who decides

Travel within the country that costs up to €400 needs nobody's approval. Above that, and for every journey
abroad, the team lead approves in writing before anything is booked. Journeys that cost more than €3,000
in all also need the head of finance. Approval takes at most three working days; no answer by then counts
as yes for journeys under €1,000 and as no above.

## 2. Trains, planes and cars

Take the train where the journey takes less than five hours from door to door. First class is allowed on
trains for journeys of more than three hours, if the work goes on during the journey. Flights are booked
in economy class; on flights of more than eight hours premium economy is allowed, and business class only
with a doctor's letter.

Book flights at least 14 days ahead. A later booking needs one sentence in the expense report that says
why. Miles and points belong to the traveller.

A private car is paid at €0.38 a kilometre, a private bicycle at €0.15. Rental cars are of the compact
class or below, with full insurance. Parking is paid; fines are not. Taxis are paid between 22:00 and
06:00, with heavy equipment, or where no train or bus goes within 30 minutes.
""",
    """
## 3. Nights and meals

Hotel rooms are paid up to the limit of the city, breakfast included. The limits are €165 a night in
cities of group A (London, New York, Paris, Tokyo, Zurich), €125 in group B (all other capitals and cities
of more than a million people) and €95 elsewhere. If a fair is on and nothing is to be had under the
limit, take the cheapest room within 30 minutes of the place and attach a screenshot of the search.

For meals there is a daily allowance, without receipts: €46 for a full day abroad, €32 for a full day at
home, and half of that on the days of departure and return. A meal that the host pays takes off €10 for
lunch and €14 for dinner. Alcohol is not paid, except at a dinner with customers.

Those who stay with friends or family instead of in a hotel may spend up to €40 a night on a gift for the
host, against a receipt.

## 4. Customers and teams

A meal with customers is paid up to €60 a head, tip included. The report names everyone at the table and
the reason. A team may spend €35 a head each quarter on an evening together; what is not spent is lost at
the end of the quarter.

## 5. Working from home and equipment

Everyone may buy a chair, a desk lamp and a headset once in four years, for up to €550 in all. Screens and
computers are ordered from the IT desk and stay the company's property. The internet at home is paid with
€25 a month for those who work there at least eight days a month.
""",
    """
## 6. Getting the money back

Send the expense report within 30 days of the last day of the journey. Reports that come after 60 days are
paid only with the signature of the head of finance, and after 180 days not at all. Receipts may be
photographs; the paper need not be kept. Under €15 no receipt is needed, up to a total of €60 a month.

Money is paid with the next salary if the report arrives by the 12th of the month, or else with the one
after. Those who cannot advance the costs ask for a company card or for an advance of up to 80 % of the
estimate, at least five working days before they leave. An advance that has not been accounted for within
45 days is taken from the salary.

Costs in another currency are converted at the rate of the card's statement. For cash, the rate of the
European Central Bank on the last working day before the journey is used.

## 7. Safety and insurance

All journeys are insured with Harrow Mutual under the policy LF-2209: illness, luggage up to €2,500, and
the journey home. The emergency line is on the back of the staff card. Nobody has to travel to a region
with an official travel warning, and nobody has to drive after 20:00 or for more than four hours a day.

## 8. When the rules do not fit

Rules are made for the usual case. If one of them makes a journey dearer or more dangerous, do what is
sensible, write down why, and tell the head of finance within a week. Questions go to the finance desk in
room 2.14, open on Tuesdays and Thursdays from 10:00 to 12:00.
""",
)


def lines_of(page: str) -> list[tuple[str, int, int]]:
    """(text, font number, size in points) for each line; font 2 is bold, an empty text is a gap."""
    lines: list[tuple[str, int, int]] = []
    for paragraph in page.strip().split("\n\n"):
        marks = len(paragraph) - len(paragraph.lstrip("#"))
        font, size = {0: (1, 11), 1: (2, 17), 2: (2, 13)}[marks]
        for line in textwrap.wrap(paragraph.lstrip("# "), LINE_CHARACTERS):
            lines.append((line, font, size))  # noqa: PERF401
        lines.append(("", 1, 11))
    return lines


def content_of(page: str, number: int, n_pages: int) -> bytes:
    """The page's content stream."""
    out = [b"BT", f"{LEADING_PT} TL {MARGIN_PT} {HEIGHT_PT - MARGIN_PT} Td".encode()]
    for text, font, size in lines_of(page):
        escaped = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
        out.append(f"/F{font} {size} Tf (".encode() + escaped.encode("cp1252") + b") Tj T*")
    out.append(b"ET")
    foot = f"BT /F1 9 Tf {WIDTH_PT // 2 - 20} 36 Td (Page {number} of {n_pages}) Tj ET"
    return b"\n".join([*out, foot.encode()])


def document(pages: tuple[str, ...]) -> bytes:
    """The whole file. Objects: 1 catalogue, 2 page tree, 3 and 4 fonts, 5 facts, then two a page."""
    kids = " ".join(f"{6 + 2 * index} 0 R" for index in range(len(pages)))
    font = "<< /Type /Font /Subtype /Type1 /BaseFont /{} /Encoding /WinAnsiEncoding >>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R /Lang (en) >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        font.format("Helvetica").encode(),
        font.format("Helvetica-Bold").encode(),
        b"<< /Title (Lanternfish Software: travel and expense policy) >>",
    ]
    for index, page in enumerate(pages):
        content = content_of(page, index + 1, len(pages))
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {WIDTH_PT} {HEIGHT_PT}] "
            f"/Contents {7 + 2 * index} 0 R /Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> >>".encode()
        )
        objects.append(f"<< /Length {len(content)} >>\nstream\n".encode() + content + b"\nendstream")
    out = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    table = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{offset:010} 00000 n \n".encode() for offset in offsets)
    out += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R /Info 5 0 R >>\n".encode()
    out += f"startxref\n{table}\n%%EOF\n".encode()
    return bytes(out)


if __name__ == "__main__":
    TARGET.write_bytes(document(PAGES))
    print(f"{TARGET}: {TARGET.stat().st_size:,} bytes")
