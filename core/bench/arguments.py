"""Command line of ``slipstream bench``; light, since every command's parser includes it."""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    benches = parser.add_subparsers(dest="bench", required=True, metavar="BENCH")
    ingest = benches.add_parser("ingest", help="reading documents, against a plain loop over the same files")
    ingest.add_argument("paths", nargs="+", metavar="PATH")
    ingest.add_argument("--json", action="store_true")
    cache = benches.add_parser("cache", help="the tiers: restart, switching, restore, save, eviction")
    cache.add_argument("--json", action="store_true")
    reuse = benches.add_parser("reuse", help="hit ratio of a trace of contexts, block by block")
    reuse.add_argument(
        "--trace", required=True, metavar="FILE", help='JSON lines {"blocks": [id, …]}, .gz or not'
    )
    reuse.add_argument("--k", type=int, default=10, help="blocks taken of each context")
    reuse.add_argument("--capacity-blocks", type=int, default=0, metavar="N", help="0: no limit")
    reuse.add_argument("--eviction", choices=("learned", "lru"), default="learned")
    reuse.add_argument("--mode", choices=("online", "offline"), default="online")
    reuse.add_argument("--method", choices=("overlap", "contextpilot", "relevance"), default="overlap")
    reuse.add_argument("--effort", type=float, default=40.0, help="of the offline search (schedule: 1)")
    reuse.add_argument("--shuffle", type=int, metavar="SEED")
    reuse.add_argument("--limit", type=int, default=0, metavar="N", help="contexts; 0: all")
    reuse.add_argument(
        "--idle-blocks", type=int, default=0, metavar="N", help="prefilled per block asked for"
    )
    reuse.add_argument("--window", type=int, default=1, metavar="W", help="requests known at a time")
    reuse.add_argument("--foresight", metavar="FILE", help="a trace of made-up questions to learn from first")
    reuse.add_argument("--no-tail", action="store_true", help="what is not cached follows by relevance")
    reuse.add_argument(
        "--no-documents", action="store_true", help="do not tell which blocks are of one document"
    )
    reuse.add_argument("--emit", metavar="FILE", help="write the orders, one JSON list of ids a line")
    reuse.add_argument("--json", action="store_true")
    index = benches.add_parser("index", help="time and memory of the context index")
    index.add_argument("--contexts", type=int, default=100_000, metavar="N")
    index.add_argument("--k", type=int, default=15)
    index.add_argument("--json", action="store_true")
    kv = benches.add_parser("kv", help="a quantized KV cache against f16: quality, speed, size")
    kv.add_argument("path", metavar="DIR", help="documents and questions with known answers (*.jsonl.gz)")
    kv.add_argument("--limit", type=int, default=100)
    kv.add_argument("--json", action="store_true")
    retrieval = benches.add_parser(
        "retrieval", help="whether the passages found hold the evidence of questions with known answers"
    )
    retrieval.add_argument(
        "path", metavar="DIR", help="*docs.jsonl.gz and questions.jsonl.gz; or passages and conversations"
    )
    retrieval.add_argument("--questions", metavar="FILE", help="other questions of the same form")
    retrieval.add_argument("--budget-tokens", type=int, default=4000, metavar="N")
    retrieval.add_argument("--scope", choices=("corpus", "subset", "document"), default="corpus")
    retrieval.add_argument("--no-embeddings", action="store_true", help="by words alone")
    retrieval.add_argument("--limit", type=int, default=0, metavar="N", help="questions; 0: all")
    retrieval.add_argument(
        "--blocks", type=int, default=0, metavar="N", help="fill the library up to N blocks with made-up text"
    )
    retrieval.add_argument(
        "--prefer-cached",
        type=float,
        metavar="M",
        help="whole contexts, in which a passage seen before is preferred within this margin",
    )
    retrieval.add_argument("--emit", metavar="FILE", help="write these contexts as a trace for bench reuse")
    retrieval.add_argument(
        "--keep", metavar="DIR", help="keep the library and its vectors there, for the next run"
    )
    retrieval.add_argument("--json", action="store_true")
    files = benches.add_parser("files", help="real documents against what must come out of them")
    files.add_argument("path", metavar="DIR", help="documents and manifest.json")
    files.add_argument("--json", action="store_true")
    dedup = benches.add_parser("dedup", help="what is saved where documents share text, and how fast")
    dedup.add_argument(
        "--data", required=True, metavar="DIR", help="templates/docs.jsonl.gz; also mtrag/ and traces/"
    )
    dedup.add_argument("--json", action="store_true")
    ask = benches.add_parser("ask", help="the same questions cold and with reuse, in pairs")
    ask.add_argument("paths", nargs="+", metavar="PATH")
    ask.add_argument("--questions", required=True, metavar="FILE", help="one question a line")
    ask.add_argument("--limit", type=int, default=20)
    ask.add_argument("--json", action="store_true")
    add_run_arguments(benches.add_parser("run", help="every policy on one workload, side by side"))


def add_run_arguments(run: argparse.ArgumentParser) -> None:
    run.add_argument(
        "--workload",
        required=True,
        metavar="W",
        help="multi-session, multi-turn, hybrid:N, memory, documents, chain, batch, restart, storm, replay",
    )
    run.add_argument("--data", required=True, metavar="DIR", help="folder of the questions and documents")
    run.add_argument("--trace", default="", metavar="FILE", help="what was retrieved for each question")
    run.add_argument(
        "--policy",
        default="all",
        metavar="P[,P…]",
        help="none, prefix, …; all: those on our engine",
    )
    run.add_argument("--k", type=int, default=5, help="passages a question")
    run.add_argument("--limit", type=int, default=0, metavar="N", help="questions; 0: all")
    run.add_argument(
        "--warm", type=int, default=0, metavar="N", help="so many questions come first, uncounted"
    )
    run.add_argument("--seed", type=int, default=1, metavar="S")
    run.add_argument(
        "--model", default=argparse.SUPPRESS, metavar="F", help="a GGUF; else that of the settings"
    )
    run.add_argument("--quick", action="store_true", help="a few questions with short passages")
    run.add_argument("--count", action="store_true", help="count tokens only: nothing is computed")
    run.add_argument("--answers", action="store_true", help="also answer, greedily: token F1, exact match")
    run.add_argument(
        "--orders", type=int, default=0, metavar="N", help="read N questions in five random orders as well"
    )
    run.add_argument(
        "--annotations", type=int, default=0, metavar="N", help="read N questions with each annotation"
    )
    run.add_argument(
        "--references",
        type=int,
        default=0,
        metavar="N",
        help="read N questions whose passages share text with them whole and shortened",
    )
    run.add_argument("--html", metavar="FILE", help="write a report")
    run.add_argument("--resume", metavar="FILE", help="record the run there, or go on with the one recorded")
    run.add_argument("--json", action="store_true")
