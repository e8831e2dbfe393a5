"""The model: one context, one live sequence, and what is known about its KV cache."""

import os

# OpenMP's threads spin while they wait for each other. Beside any other busy thread (the window, a file being
# read) that starves them all: on two cores with one busy process, prefill fell from 290 to 80 tokens/s and
# decoding from 110 to 3; with a short spin it kept 290 and 100. libgomp reads this when llama.cpp loads it.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")
