"""The cost of `import tokentape` beyond `import numpy, pyarrow`: the median of eleven fresh interpreters."""

from __future__ import annotations

import statistics
import subprocess
import sys

REPEATS = 11
PROGRAM = "import time; {before}; start = time.perf_counter(); {timed}; print(time.perf_counter() - start)"


def median_ms(before: str, timed: str) -> float:
    """The median milliseconds of the statement `timed` after `before`."""
    program = [sys.executable, "-c", PROGRAM.format(before=before, timed=timed)]
    times = [float(subprocess.run(program, capture_output=True, check=True).stdout) for _ in range(REPEATS)]  # noqa: S603
    return 1e3 * statistics.median(times)


if __name__ == "__main__":
    print(f"import numpy, pyarrow: {median_ms('pass', 'import numpy, pyarrow'):.1f} ms")
    print(f"import tokentape after them: {median_ms('import numpy, pyarrow', 'import tokentape'):.1f} ms")
    print(f"import tokentape alone: {median_ms('pass', 'import tokentape'):.1f} ms")
