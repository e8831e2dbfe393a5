import sys
from pathlib import Path

# The scripts of packaging/ import each other as neighbours; the folder is no package (it would hide the
# module of that name).
sys.path.append(str(Path(__file__).parent.parent.parent / "packaging"))
