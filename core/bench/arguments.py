"""Command line of ``slipstream bench``; light, since every command's parser includes it."""

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    benches = parser.add_subparsers(dest="bench", required=True, metavar="BENCH")
    ingest = benches.add_parser(
        "ingest", help="reading documents, against reading and hashing the bytes alone"
    )
    ingest.add_argument("paths", nargs="+", metavar="PATH")
    ingest.add_argument("--json", action="store_true")
    cache = benches.add_parser("cache", help="the tiers: restart, switching, restore, save, eviction")
    cache.add_argument("--json", action="store_true")
    kv = benches.add_parser("kv", help="a quantized KV cache against f16: quality, speed, size")
    kv.add_argument("path", metavar="DIR", help="documents and questions with known answers (*.jsonl.gz)")
    kv.add_argument("--limit", type=int, default=100)
    kv.add_argument("--json", action="store_true")
    ask = benches.add_parser("ask", help="the same questions cold and with reuse, in pairs")
    ask.add_argument("paths", nargs="+", metavar="PATH")
    ask.add_argument("--questions", required=True, metavar="FILE", help="one question a line")
    ask.add_argument("--limit", type=int, default=20)
    ask.add_argument("--json", action="store_true")
