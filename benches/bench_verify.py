"""How many tokens a second lint and verify read, and what memory that takes.

    python benches/bench_verify.py MODEL [--rows 512]

Rows are rollouts of four turns, about 3,000 tokens each, none of them twice. The rates are medians over batches in
memory; every pass reads rows that were not seen before. Both use all processors, so on a machine that does nothing else
the clock shows the rate of one processor times their number. Memory is what a process takes beside the file that it
maps, after a file and after one four times as long.
"""

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import tokentape as tt

WORDS = [
    f"{a}{b}" for a in ("sum", "term", "row", "part", "step", "value") for b in ("", "s", " of", " by", " to", ",")
]


def text(rng: random.Random, words: int) -> str:
    return " ".join(
        rng.choice(WORDS) + (f" {rng.randrange(10**4)}" if rng.random() < 0.2 else "") for _ in range(words)
    )


def batch(chat: tt.Chat, rows: int, seed: int) -> tt.Batch:
    rng = random.Random(seed)
    stop = next(token for token, _, why in chat.stop_tokens if "template" in why)
    groups = []
    for number in range(rows // 4):
        question = text(rng, 200)
        played = []
        for _ in range(4):
            trajectory = chat.start([{"role": "user", "content": question}], history="keep")
            for turn in range(4):
                if turn:
                    trajectory = trajectory.observe([{"role": "user", "content": text(rng, 150)}])
                ids = [*chat.encode(text(rng, 120)).tolist(), stop]
                trajectory.act(ids, [-rng.random() - 1e-3 for _ in ids])
            trajectory.reward = rng.random()
            played.append(trajectory)
        groups.append(tt.Group(played, id=f"{seed}-{number}").with_advantages("grpo"))
    return tt.Batch.from_groups(groups)


def rate(check, batches: list[tt.Batch]) -> tuple[float, float]:
    """Tokens a second of the clock, and of one processor: the median over the batches."""
    clock, processor = [], []
    for made in batches:
        start, used = time.perf_counter(), time.process_time()
        report = check(made)
        clock.append(report.tokens / (time.perf_counter() - start))
        processor.append(report.tokens / (time.process_time() - used))
        assert report.ok, str(report.faults[0])
    return statistics.median(clock), statistics.median(processor)


MEMORY = """
import re, sys, tokentape as tt
tt.lint(sys.argv[1])
print(re.search(r"RssAnon:\\s+(\\d+)", open("/proc/self/status").read()).group(1))
"""


def anonymous(path: Path) -> int:
    """Kilobytes that a process holds after it linted a file, mapped files aside."""
    command = [sys.executable, "-c", MEMORY, str(path)]
    return int(subprocess.run(command, capture_output=True, check=True).stdout)  # noqa: S603


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--rows", type=int, default=512)
    options = parser.parse_args()
    chat = tt.Chat.from_pretrained(options.model)
    batches = [batch(chat, options.rows, seed) for seed in range(5)]
    tokens = tt.lint(batches[0]).tokens
    print(f"{options.rows} rows, {tokens:,} tokens a pass")
    for name, check in (("lint", tt.lint), ("verify", lambda made: tt.verify(made, chat))):
        clock, processor = rate(check, batches)
        print(f"{name:<7} {clock:>12,.0f} tokens/s by the clock, {processor:>12,.0f} tokens/s of one processor")
    with tempfile.TemporaryDirectory() as folder:
        short, long = Path(folder) / "short.tape", Path(folder) / "long.tape"
        for path, times in ((short, 1), (long, 4)):
            with tt.RunWriter(path, every_groups=options.rows // 4) as run:
                for seed in range(times):
                    run.write(batches[seed])
        print(f"memory  {anonymous(short):,} kB for {tokens:,} tokens, {anonymous(long):,} kB for {4 * tokens:,}")


if __name__ == "__main__":
    main()
