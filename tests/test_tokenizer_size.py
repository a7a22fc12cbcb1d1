"""What encoding takes of memory, and texts of any length: each measured in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import corpus

# Arguments: the model, what encodes, and megabytes of text, which is random words of several scripts. Prints how much
# memory loading has taken, and how much all together.
ENCODE = """
import gc, random, sys
import numpy, tokenizers
import tokentape as tt

def memory():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))

folder, kind, megabytes = sys.argv[1], sys.argv[2], int(sys.argv[3])
draw = random.Random(3)
letters = "etaoinshrdlu" * 4 + "cmfwypvbgkjqxz" + "日本語的一是не ж éü_()=.,;"
def text():
    words = ("".join(draw.choices(letters, k=draw.randrange(1, 12))) for _ in range(1000))
    return " ".join(words)
text()
before = memory()
if kind == "tokenizers":
    library = tokenizers.Tokenizer.from_file(folder + "/tokenizer.json")
    encode = lambda text: library.encode_batch_fast([text], add_special_tokens=False)
else:
    encode = tt.Chat.from_pretrained(folder).encode
encode(text())
loaded, done = memory(), 0
while done < megabytes * 1_000_000:
    for _ in range(20):
        new = text()
        encode(new)
        done += len(new.encode())
    gc.collect()
print(loaded - before, memory() - before)
"""
# Arguments: the model and megabytes of text. Every kind of text comes back from its ids.
RUNS = """
import sys
import tokentape as tt

chat, size = tt.Chat.from_pretrained(sys.argv[1]), int(float(sys.argv[2]) * 1e6)
for unit in ("a", " ", "=", "7", "\\n", "é", "日", "\\x00", "ab", "the quick brown fox. ", "<|im_end|>", "<|im_"):
    text = unit * (size // len(unit.encode()))
    assert chat.decode(chat.encode(text)) == text, unit
"""
needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read as Linux tells it")


def run(script: str, *arguments: object, cache: Path | None = None) -> list[float]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    environment = os.environ | {"TOKENTAPE_CACHE": str(cache or "off")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [float(figure) for figure in done.stdout.split()]


def compare(name: str, megabytes: int, cache: Path) -> None:
    """Memory beside that of the library: compiled, and read from the cache that the second of three writes."""
    folder = corpus.tokenizer_folder(name)
    _, library = run(ENCODE, folder, "tokenizers", megabytes)
    for place in (None, cache, cache):
        _, ours = run(ENCODE, folder, "tokentape", megabytes, cache=place)
        assert ours <= 1.2 * library, (name, place, ours, library)
    assert ours <= 0.6 * library, (name, ours, library)


@needs_proc
def test_memory_is_no_more_than_that_of_the_library(tmp_path: Path):
    compare("qwen2.5", 1, tmp_path)


@needs_proc
@pytest.mark.long
@pytest.mark.parametrize("name", ["qwen3", "llama3", "gemma3", "gpt-oss"])
def test_memory_after_ten_megabytes(name: str, tmp_path: Path):
    compare(name, 10, tmp_path)


@needs_proc
def test_random_text_does_not_grow_the_cache(tmp_path: Path):
    loaded, after = run(ENCODE, corpus.tokenizer_folder("qwen2.5"), "tokentape", 4, cache=tmp_path)
    assert after - loaded < 10, (loaded, after)


@needs_proc
@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_gigabyte_of_random_text_does_not_grow_the_cache(tmp_path: Path):
    loaded, after = run(ENCODE, corpus.tokenizer_folder("qwen3"), "tokentape", 1000, cache=tmp_path)
    assert after - loaded < 10, (loaded, after)


def test_long_runs_come_back(tmp_path: Path):
    run(RUNS, corpus.tokenizer_folder("qwen2.5"), 0.3, cache=tmp_path)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", ["qwen3", "llama3", "deepseek-v3", "gemma3", "gpt-oss", "mistral-tekken-240911"])
def test_a_hundred_megabytes_come_back(name: str, tmp_path: Path):
    run(RUNS, corpus.tokenizer_folder(name), 100, cache=tmp_path)
