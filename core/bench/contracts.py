"""Made-up contracts in two versions, for measuring what de-duplication saves. The same seed, the same text.

A contract is numbered clauses, each a heading and a paragraph wrapped at 80 characters. Sentences are put
together from parts, with amounts, days and names that differ from clause to clause.
"""

import random
import textwrap

_PARTIES = ("the Tenant", "the Landlord", "the Supplier", "the Customer", "the Agent", "the Guarantor")
_DUTIES = (
    "shall pay {amount} within {days} days of receipt of a proper invoice",
    "shall keep the {thing} in good repair and give notice of any damage within {days} days",
    "may withhold up to {amount} until the {thing} has been inspected and accepted in writing",
    "shall not assign, charge or sublet the {thing} without written consent, which may be refused for cause",
    "shall insure the {thing} for at least {amount} with an insurer that the other party has approved",
    "must deliver the {thing} to the address in Schedule {number} no later than {days} days after signature",
    "bears the cost of the {thing} up to {amount} a year, and half of what goes beyond that",
    "shall keep records of the {thing} for {number} years and show them on request during business hours",
)
_CONDITIONS = (
    "If {party} fails to do so, interest of {number} percent a year is due from the first day of delay.",
    "This does not apply where the delay was caused by {party} or by events beyond anybody's control.",
    "Notice must be given in writing; a message sent before 17:00 counts as received on day {days}.",
    "A dispute about the {thing} is first put before the expert named in Schedule {number}.",
    "The limit of {amount} is raised each January in line with the index of consumer prices.",
    "Nothing in this clause limits the right of {party} to end the agreement under clause {number}.",
    "Where the {thing} is shared with third parties, {party} answers for them as for itself.",
)
_THINGS = (
    "premises", "equipment", "deposit", "software", "documentation", "boiler", "garden", "access road",
    "data room", "spare parts", "meter", "roof terrace", "archive", "delivery vehicle", "test rig",
)  # fmt: skip
_TITLES = ("Payment", "Repairs", "Inspection", "Transfer", "Insurance", "Delivery", "Costs", "Records", "Use")


def contract(n_bytes: int, seed: int = 0) -> list[str]:
    """The clauses of a contract of at least ``n_bytes`` bytes, each ending with an empty line."""
    chance = random.Random(seed)
    clauses: list[str] = []
    size = 0
    while size < n_bytes:
        clauses.append(_clause(len(clauses) + 1, chance))
        size += len(clauses[-1])
    return clauses


def edited_clauses(clauses: list[str], share: float, seed: int = 0) -> list[str]:
    """Another version: in ``share`` of the clauses one figure differs; two are new, two are gone.

    Numbers of clauses stay, as in a contract that is amended: ``12a`` is new, ``30`` is left out.
    """
    chance = random.Random(seed)
    changed = set(chance.sample(range(len(clauses)), round(share * len(clauses))))
    out = [_with_other_figure(text, chance) if n in changed else text for n, text in enumerate(clauses)]
    for _ in range(2):
        place = chance.randrange(1, len(out))
        out.insert(place, _clause(place, chance).replace(f"{place}. ", f"{place}a. ", 1))
        del out[chance.randrange(len(out))]
    return out


def edited_lines(text: str, share: float, seed: int = 0) -> str:
    """``text`` with one word or figure changed in ``share`` of its lines."""
    chance = random.Random(seed)
    lines = text.split("\n")
    full = [n for n, line in enumerate(lines) if len(line.split()) > 2]
    for n in chance.sample(full, round(share * len(full))):
        words = lines[n].split(" ")
        words[chance.randrange(1, len(words))] = f"{chance.choice('abcdefgh')}{chance.randrange(100, 1000)}"
        lines[n] = " ".join(words)
    return "\n".join(lines)


def without_newlines(text: str) -> str:
    """The same text in one line."""
    return " ".join(text.split())


def _clause(number: int, chance: random.Random) -> str:
    sentences = []
    for _ in range(chance.randrange(2, 5)):
        sentences.append(f"{chance.choice(_PARTIES)} {chance.choice(_DUTIES)}.")
        sentences.append(chance.choice(_CONDITIONS))
    text = " ".join(one[0].upper() + one[1:] for one in sentences)
    while "{" in text:
        text = text.replace("{amount}", f"€{chance.randrange(1, 400) * 250:,}", 1)
        text = text.replace("{days}", str(chance.randrange(5, 90)), 1)
        text = text.replace("{number}", str(chance.randrange(2, 40)), 1)
        text = text.replace("{thing}", chance.choice(_THINGS), 1)
        text = text.replace("{party}", chance.choice(_PARTIES), 1)
    return f"{number}. {chance.choice(_TITLES)}\n{textwrap.fill(text, 80)}\n\n"


def _with_other_figure(clause: str, chance: random.Random) -> str:
    """The clause with one of its figures changed, not its number."""
    head, _, text = clause.partition("\n")
    places = [n for n, c in enumerate(text) if c.isdigit()]
    if not places:
        return clause
    place = chance.choice(places)
    other = chance.choice([digit for digit in "123456789" if digit != text[place]])
    return f"{head}\n{text[:place]}{other}{text[place + 1 :]}"
