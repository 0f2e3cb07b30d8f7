"""What tests of the corpus stages share."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # `faults`, which spawned workers import too
