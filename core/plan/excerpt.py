"""The part of a passage that is read where there is no time for all of it."""

from core.text import sentences


def window(text: str, start: int, end: int, most: int) -> tuple[int, int]:
    """The span of whole sentences around ``text[start:end]`` that has at most ``most`` characters.

    It grows by what follows and by what comes before, in turn. Of a sentence that is longer by itself the
    beginning is taken, up to a word's end. ``(0, 0)`` for a text without sentences, or where ``most`` < 1.
    """
    spans = sentences(text)
    if not spans or most < 1:
        return 0, 0
    first = next((n for n, (_, stop) in enumerate(spans) if stop > start), len(spans) - 1)
    last = max(first, next((n for n, (_, stop) in enumerate(spans) if stop >= end), len(spans) - 1))
    while last > first and spans[last][1] - spans[first][0] > most:
        last -= 1
    begin, stop = spans[first][0], spans[last][1]
    if stop - begin > most:
        space = text.rfind(" ", begin + 1, begin + most + 1)
        return begin, space if space > begin else begin + most
    grew = True
    while grew:
        grew = False
        for more in (last + 1, first - 1):
            a, b = min(first, more), max(last, more)
            if a >= 0 and b < len(spans) and spans[b][1] - spans[a][0] <= most:
                first, last, grew = a, b, True
    return spans[first][0], spans[last][1]
