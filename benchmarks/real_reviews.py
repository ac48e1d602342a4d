"""Real reviews for benchmarks and tests: in the folder SHOAL_DATA, or in shared/data next to the project."""

import os
from pathlib import Path

FOLDER = Path(os.environ.get("SHOAL_DATA") or Path(__file__).parents[2] / "shared" / "data")
REVIEWS = sorted((FOLDER / "reviews").glob("*.json.gz"))
ABSENT = f"no real reviews in {FOLDER / 'reviews'}: set SHOAL_DATA to the folder that holds reviews/*.json.gz"
