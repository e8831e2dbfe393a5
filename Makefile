# Everything starts here. Set-up is part of every target and quick once it has been done.
#
#   make run BACKEND=cpu                    do without the GPU
#   make run PYTHON=/path/to/python3.12     use this Python for the environment
#   CMAKE_ARGS=... make run                 your own options for llama.cpp's build

PYTHON = python3
BACKEND = auto
BIN = .venv/bin
SETUP = $(PYTHON) packaging/bootstrap.py --backend $(BACKEND)

.PHONY: help run test setup-dev check ocr bundle bench clean

help:
	@echo "make run     set up and open Slipstream"
	@echo "make test    set up, check the code, run the tests (no screen needed)"
	@echo "make check   formatting, lint, types and import contracts only"
	@echo "make ocr     add text recognition for scans and pictures (about 300 MB)"
	@echo "make bench   what the cache saves on this machine; run it alone"
	@echo "make bundle  a folder that runs without Python, in dist/slipstream (Linux)"
	@echo "make clean   remove build products; .venv stays, for llama.cpp took long to compile"

run:
	@$(SETUP) --window
	@$(BIN)/slipstream --samples

setup-dev:
	@$(SETUP) --extras test,dev

check: setup-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

test: check
	@QT_QPA_PLATFORM=offscreen $(BIN)/python -m pytest

ocr:
	@$(SETUP) --window --extras ocr

bench: setup-dev
	@$(BIN)/slipstream bench ask assets/samples --questions assets/questions.txt

bundle: setup-dev
	@$(BIN)/python packaging/bundle.py

clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find app core packaging tests -name __pycache__ -type d -prune -exec rm -rf {} +
