"""Naive oracles: slow, obvious versions of what the product does fast."""

import itertools
import re


def best_path_by_brute_force(tree, start, wanted, tokens):
    """Most tokens on any path of ``tree`` (a set of tuples) below ``start`` that holds only ``wanted``."""
    best = 0
    allowed = set(wanted)
    for path in tree:
        below = path[len(start) :]
        if path[: len(start)] == start and set(below) <= allowed:
            best = max(best, sum(tokens(element) for element in below))
    return best


def best_company_by_brute_force(tree, start, wanted, blocks, tokens, most_foreign, price):
    """What the best path of ``tree`` below ``start`` is worth, if others of ``blocks`` may stand on it."""
    best = 0.0
    for path in tree:
        below = path[len(start) :]
        if path[: len(start)] != start or not set(below) <= set(blocks) | set(wanted):
            continue
        foreign = sum(tokens(element) for element in below if element not in wanted)
        if foreign <= most_foreign:
            best = max(best, sum(tokens(e) for e in below if e in wanted) - price * foreign)
    return best


# --- core.cdc ----------------------------------------------------------------------------------------

_CDC_SPACES = set("\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | {
    chr(code) for code in range(0x2000, 0x200B)
}
_CDC_CLOSERS = set("\"')]»’”」』）")
_CDC_FULL_STOPS = set("؟۔।॥。！？｡")


def cdc_weight(character):
    """Thousandths of a token."""
    code = ord(character)
    if character in _CDC_SPACES:
        return 500 if 0x80 < code < 0x370 else 800 if code == 0x1680 else 550
    if code < 128:
        return 120 if character.isalpha() else 1000 if character.isdigit() else 800
    for limit, weight in ((0x370, 500), (0x590, 400), (0x900, 667), (0x2000, 800), (0x2E80, 1000)):
        if code < limit:
            return weight
    return 1110 if code < 0x10000 else 2000


def cdc_weights_before(text):
    """Weight of text[:i] for every i in 0..len(text); white space after white space is free."""
    before = [0]
    for index, character in enumerate(text):
        free = character in _CDC_SPACES and index > 0 and text[index - 1] in _CDC_SPACES
        before.append(before[-1] + (0 if free else cdc_weight(character)))
    return before


def cdc_hash(text, at, hashed=24):
    seen = [ord(character) for character in text[at : at + 64] if character not in _CDC_SPACES][:hashed]
    mask = (1 << 64) - 1
    value = 0xCBF29CE484222325
    for code in seen:
        value = ((value ^ code) * 0x100000001B3) & mask
    value ^= value >> 32
    value = (value * 0xD6E8FEB86659FD93) & mask
    value ^= value >> 32
    return value >> 1


def _cdc_ends_sentence(before, after):
    """``before``: everything up to the gap; ``after``: everything from the next character on."""
    stripped = before
    while stripped and len(before) - len(stripped) < 3 and stripped[-1] in _CDC_CLOSERS:
        stripped = stripped[:-1]
    if not stripped:
        return False
    if stripped[-1] in "!?…":
        return True
    if stripped[-1] != "." or re.match("[a-z]", after):
        return False
    word = ""
    for character in reversed(stripped[-6:-1][-5:]):
        if character in _CDC_SPACES or character in "\"'([":
            break
        word = character + word
    if "." in word:
        return False
    if re.fullmatch("[A-Z](|.|..)", word, re.DOTALL):
        return len(word) > 1 and not re.fullmatch("[a-z]", word[-1])
    if re.fullmatch("[0-9](|.?[0-9])", word, re.DOTALL):
        rest = stripped[: len(stripped) - 1 - len(word)]
        return rest != "" and rest[-1] != "\n"
    return True


def cdc_strengths(text):
    """{position: strength} of every place with some structure."""
    found = {}
    in_heading = False
    line_start = 0
    spaces, closers = re.escape("".join(_CDC_SPACES)), re.escape("".join(_CDC_CLOSERS))
    after_full_stop = re.compile(f"[{''.join(_CDC_FULL_STOPS)}][{closers}{spaces}]*$")
    for index in range(len(text)):
        if text[index] in _CDC_SPACES:
            continue
        visible = text[:index].rstrip("".join(_CDC_SPACES))
        gap = text[len(visible) : index]
        full_stop = after_full_stop.search(visible[-8:]) is not None
        newlines = sum(gap.count(mark) for mark in "\n\u2028\u2029")
        if newlines or visible == "":
            heading = re.match("#{1,6} ", text[index:]) is not None
            if visible and not in_heading:
                if heading:
                    found[index] = 5
                elif newlines > 1:
                    found[index] = 4
                elif (
                    any(mark in text[line_start:index] for mark in "|\t")
                    or full_stop
                    or _cdc_ends_sentence(visible, text[index:])
                    or re.match(r"(?:[0-9]{1,3}[.)]|[*+\-•–▪‣])[ \t]", text[index:])
                ):
                    found[index] = 3
                else:
                    found[index] = 1
            in_heading = heading
            line_start = index
        elif (full_stop and text[index] not in _CDC_CLOSERS | _CDC_FULL_STOPS) or (
            gap and _cdc_ends_sentence(visible, text[index:])
        ):
            found[index] = 2
    return found


def _cdc_joins(text, index):
    code = ord(text[index])
    ranges = ((0x300, 0x370), (0x64B, 0x660), (0x900, 0xE80), (0x3099, 0x309B), (0xFE00, 0xFE10))
    return (
        any(low <= code < high for low, high in ranges)
        or code == 0x200D
        or 0x1F3FB <= code < 0x1F400
        or text[index - 1] == "\u200d"
    )


def cdc_boundaries(text, least=128_000, wanted=256_000, most=512_000, hashed_in_prose=24):
    """What ``core.cdc.boundaries`` must return: at every step, the best cut of the window, found by
    looking at every place in it.
    """
    before = cdc_weights_before(text)
    strengths = cdc_strengths(text)
    visible = [index for index in range(len(text)) if text[index] not in _CDC_SPACES]
    cuts = []
    start = 0
    while True:
        over = next((i for i in visible if i >= start and before[i + 1] - before[start] > most), None)
        if over is None:
            return [*cuts, len(text)] if text else []

        def size(index, start=start):
            return before[index] - before[start]

        structured = [k for k in strengths if start < k <= over and size(k) >= least]
        window = [k for k in visible if start < k < over and least <= size(k) <= most]
        words = [k for k in window if text[k - 1] in _CDC_SPACES]
        letters = [k for k in window if not _cdc_joins(text, k)]
        if structured:
            start = max(
                structured,
                key=lambda k: (2 * strengths[k] + (size(k) >= wanted), cdc_hash(text, k), k),
            )
        elif words or letters:
            start = max(words or letters, key=lambda k: cdc_hash(text, k, hashed_in_prose))
        else:
            start = over
        cuts.append(start)


# --- core.plan.schedule ------------------------------------------------------------------------------------


def saved_by_a_cache(paths, tokens=lambda _: 1, capacity=None):
    """Tokens that a cache of whole prefixes saves, LRU with ``capacity`` blocks if given."""
    cache, saved = {}, 0
    for path in paths:
        prefixes = [tuple(path[:n]) for n in range(1, len(path) + 1)]
        for prefix in prefixes:
            if prefix not in cache:
                break
            saved += tokens(prefix[-1])
        for prefix in reversed(prefixes):  # the leaf is the first to go
            cache.pop(prefix, None)
            cache[prefix] = None
        while capacity is not None and len(cache) > capacity:
            del cache[next(iter(cache))]
    return saved


def most_that_can_be_saved(contexts, tokens=lambda _: 1):
    """The best of all arrangements of all contexts; for tiny batches."""
    arrangements = [list(itertools.permutations(dict.fromkeys(context))) for context in contexts]
    return max(saved_by_a_cache(paths, tokens) for paths in itertools.product(*arrangements))


def context_distance(a, b, alpha):
    shared = set(a) & set(b)
    if not shared:
        return 1.0
    apart = sum(abs(a.index(block) - b.index(block)) for block in shared)
    return 1 - len(shared) / max(len(a), len(b)) + alpha * apart / len(shared)


def average_linkage_by_definition(distance):
    """Merges of clusters (as frozensets of indices) and their heights; ``distance`` is a square matrix."""
    clusters = [frozenset([i]) for i in range(len(distance))]
    merges = []
    while len(clusters) > 1:
        height, a, b = min(
            (sum(distance[i][j] for i in a for j in b) / (len(a) * len(b)), x, y)
            for x, a in enumerate(clusters)
            for y, b in enumerate(clusters[:x])
        )
        merges.append((height, clusters[a] | clusters[b]))
        clusters = [c for i, c in enumerate(clusters) if i not in (a, b)] + [clusters[a] | clusters[b]]
    return merges
