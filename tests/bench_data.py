"""Made-up data in the form that ``slipstream bench run`` reads: small enough for a model of two layers."""

import gzip
import json

_WORDS = [
    "rent",
    "garden",
    "invoice",
    "harbour",
    "engine",
    "letter",
    "winter",
    "bridge",
    "copper",
    "window",
    "ladder",
    "market",
]


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def _text(document, block):
    word = _WORDS[(3 * document + block) % len(_WORDS)]
    return f"Part {block} of document {document} says that the {word} costs {document}{block} euros. " * 3


def library(folder, n_documents=2, n_blocks=3, n_questions=4):
    """Documents of a few blocks; question n asks of document n mod ``n_documents``, blocks in turned order."""
    docs, blocks, questions, trace = [], [], [], []
    for d in range(n_documents):
        texts = [_text(d, b) for b in range(n_blocks)]
        starts = [sum(map(len, texts[:b])) for b in range(n_blocks)]
        docs.append({"doc_id": f"d{d}", "title": f"Document {d}", "text": "".join(texts)})
        blocks += [
            {"block_id": f"d{d}#{b}", "doc_id": f"d{d}", "start": start, "end": start + len(texts[b])}
            for b, start in enumerate(starts)
        ]
    for q in range(n_questions):
        d, b = q % n_documents, q % n_blocks
        questions.append(
            {
                "qid": f"q{q}",
                "subset": "made-up",
                "scope": "document",
                "question": f"What does part {b} of document {d} cost, asked for the time {q}?",
                "answers": [f"{d}{b} euros"],
                "gold_doc_ids": [f"d{d}"],
                "gold_block_ids": [f"d{d}#{b}"],
                "evidence": [{"doc_id": f"d{d}", "text": _text(d, b).strip(), "start": 0}],
            }
        )
        order = [(b + step) % n_blocks for step in range(n_blocks)]
        trace.append({"qid": f"q{q}", "blocks": [f"d{d}#{one}" for one in order]})
    write(folder / "docs.jsonl.gz", docs)
    write(folder / "blocks.jsonl.gz", blocks)
    write(folder / "questions.jsonl.gz", questions)
    write(folder / "traces" / "made_document.jsonl.gz", trace)
    return folder


def conversations(folder, n_conversations=2, n_turns=3):
    """Turn t of a conversation is shown passages t and t + 1: each turn repeats one of the turn before."""
    rows, passages = [], []
    for c in range(n_conversations):
        names = [f"c{c}p{t}" for t in range(n_turns + 1)]
        passages += [
            {"passage_id": name, "doc_id": name, "domain": "made-up", "title": "", "text": _text(c, t)}
            for t, name in enumerate(names)
        ]
        turns = [
            {
                "turn": t + 1,
                "question": f"And what does part {t} cost in document {c}?",
                "answer": f"It costs {c}{t} euros.",
                "gold_passage_ids": [names[t]],
                "shown_passage_ids": names[t : t + 2],
            }
            for t in range(n_turns)
        ]
        rows.append({"conv_id": f"c{c}", "domain": "made-up", "turns": turns})
    write(folder / "conversations.jsonl.gz", rows)
    write(folder / "passages.jsonl.gz", passages)
    return folder


def dialogues(folder, n_sessions=3, n_questions=3):
    """One long dialogue, its sessions as blocks."""
    write(
        folder / "blocks.jsonl.gz",
        [{"block_id": f"s{s}", "sample_id": "talk", "text": _text(7, s)} for s in range(n_sessions)],
    )
    asked = [
        {
            "qid": f"m{q}", "sample_id": "talk", "question": f"What did they say of part {q}?",
            "answer": f"7{q} euros" if q else None, "gold_block_ids": [f"s{q % n_sessions}"],
        }
        for q in range(n_questions)
    ]  # fmt: skip
    write(folder / "questions.jsonl.gz", asked)
    order = [f"s{s}" for s in range(n_sessions)]
    write(
        folder / "traces" / "locomo.jsonl.gz", [{"qid": f"m{q}", "blocks": order} for q in range(n_questions)]
    )
    return folder
