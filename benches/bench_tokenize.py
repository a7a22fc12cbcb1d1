"""Text to ids against other engines, in one process and on one thread, with flat buffers out of all.

    python benches/bench_tokenize.py MODEL_FOLDER... [--all FOLDER] [--megabytes 1.2]

With `--all`, every model in a folder is measured. A MODEL_FOLDER holds `tokenizer.json` and a chat template. The texts
are rendered chats of 200 bytes to 100 KB. *Cold* is the first pass after loading, *warm* the median of later ones; each
pass has text that no engine has seen, and the engines take turns. Figures are megabytes a second of CPU time, of all
threads that an engine uses; on shared cores only their ratios mean anything. Caches of whole segments are off. *Wrong*
counts texts with other ids than `tokenizers`; the summary counts an engine as a peer only where it has none wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import time
import timeit
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers

import tokentape as tt
from texts import Chats
from tokentape import _core

Encode = Callable[[str], Any]
# What is hard to encode right: composition, old Unicode tables, folded contractions, cut control tokens, runs.
HARD = [
    "e\u0301 \u212b \u1100\u1161\u11a8 a\u0327\u0301 \u1ac2 \u0301x",
    "n'\u017f'Llx we'LL 'S",
    "<|im_sta <think>x</think ><|end<|",
    "a  b \t\n\r\n\n  c\u00a0\u2003d\u0085",
    "1 12 123 1234567 \u0663\u0664\u0665 \u00bd\u2167",
    "\x00\x01\x7f\ufeff\U0010ffff\u0378",
    "=" * 100 + " " * 60 + "a" * 300,
]
SHARE_OF_THE_LIBRARY = 0.08  # it is slow: a part of the texts says as much


def tiktoken_encoding(content: dict[str, Any]) -> Encode:
    """The same vocabulary in tiktoken, whose ranks are ids; it knows one pattern and no normalizer."""
    import tiktoken

    steps = content["pre_tokenizer"].get("pretokenizers", [content["pre_tokenizer"]])
    (pattern,) = [step["pattern"]["Regex"] for step in steps if step["type"] == "Split"]
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in kept]
    letters = {chr(byte): byte for byte in kept} | {chr(256 + place): byte for place, byte in enumerate(others)}
    special = {token["content"]: token["id"] for token in content["added_tokens"]}
    ranks = {
        bytes(letters[c] for c in token): rank
        for token, rank in content["model"]["vocab"].items()
        if token not in special
    }
    encoding = tiktoken.Encoding("t", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    return lambda text: encoding.encode_to_numpy(text, allowed_special="all")


def engines(folder: Path) -> dict[str, Callable[[], Encode]]:
    """How to load each engine."""
    path = str(folder / "tokenizer.json")

    def fastokens() -> Encode:
        import fastokens

        tokenizer = fastokens.Tokenizer.from_file(path)
        return lambda text: np.frombuffer(tokenizer.encode_batch_flat([text])[0], np.uint32)

    def gigatoken() -> Encode:
        import gigatoken

        return gigatoken.Tokenizer(path).encode

    def library() -> Encode:
        tokenizer = tokenizers.Tokenizer.from_file(path)
        return lambda text: tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids

    return {
        "tokentape": lambda: tt.Chat.from_pretrained(folder).encode,
        "tokenizers": library,
        "fastokens": fastokens,
        "gigatoken": gigatoken,
        "tiktoken": lambda: tiktoken_encoding(json.loads(Path(path).read_text(encoding="utf-8"))),
    }


def load(makers: dict[str, Callable[[], Encode]]) -> tuple[dict[str, Encode], dict[str, float]]:
    """The engines that are installed and take the tokenizer, and the seconds of loading."""
    loaded, seconds = {}, {}
    for name, make in makers.items():
        start = time.perf_counter()
        try:
            loaded[name] = make()
        except Exception as error:
            print(f"    {name}: not measured ({type(error).__name__}: {str(error)[:80]})")
        seconds[name] = time.perf_counter() - start
    return loaded, seconds


def speed(encode: Encode, texts: list[str]) -> float:
    """Megabytes a second of CPU time."""
    start = time.process_time()
    for text in texts:
        encode(text)
    return sum(len(text.encode()) for text in texts) / 1e6 / (time.process_time() - start)


def wrong(encode: Encode, right: Encode, texts: list[str]) -> int:
    """The number of texts with other ids."""
    return sum(not np.array_equal(np.asarray(encode(text)), np.asarray(right(text))) for text in texts)


def call(encode: Encode, empty: Callable[[], Any], text: str) -> float:
    """Microseconds of a call with 60 bytes, beyond those of a call that does nothing."""
    encode(text)
    times = [timeit.timeit(lambda: encode(text), number=2_000) - timeit.timeit(empty, number=2_000) for _ in range(15)]
    return statistics.median(times) / 2_000 * 1e6


def threads(encode: Encode, texts: list[str]) -> float:
    """How much more two threads encode than one, each for itself, in the same time."""

    def passes(count: int) -> float:
        stop = time.perf_counter() + 0.5

        def go_round(_: int) -> float:
            done = 0
            while time.perf_counter() < stop:
                encode(texts[done % len(texts)])
                done += 1
            return done / len(texts)

        with ThreadPoolExecutor(count) as pool:
            return sum(pool.map(go_round, range(count)))

    return statistics.median(passes(2) / passes(1) for _ in range(3))


def renders_tools(chat: tt.Chat, source: Chats) -> bool:
    """Whether the template takes turns with tool calls."""
    try:
        chat.render(source.chat(200))
    except tt.RenderError:
        return False
    return True


Row = dict[str, tuple[float, float, int]]


def summary(rows: dict[str, Row]) -> None:
    """Prints what each engine reaches of `tokenizers`, and tokentape of its quickest exact peer."""
    names = ["tokentape", "fastokens", "gigatoken", "tiktoken"]
    print(f"\n| cold / warm, of tokenizers | {' | '.join(names)} | tokentape, of the quickest exact peer |")
    print("|---" * (len(names) + 2) + "|")
    for model, row in rows.items():
        cells = []
        for name in names:
            cold, warm, faults = row.get(name, (0.0, 0.0, 0))
            cells.append(
                f"{cold:.1f} / {warm:.1f}{f' ({faults} wrong)' if faults else ''}" if warm else "does not load"
            )
        peers = [figures for name, figures in row.items() if name in names[1:] and not figures[2]] or [(1.0, 1.0, 0)]
        best = [row["tokentape"][index] / max(figures[index] for figures in peers) for index in range(2)]
        print(f"| {model} | {' | '.join(cells)} | {best[0]:.2f} / {best[1]:.2f} |")


def measure(folder: Path, source: Chats, megabytes: float) -> Row:
    """Prints a table for one tokenizer."""
    chat = tt.Chat.from_pretrained(folder)
    print(f"\n{folder.name} ({chat.engine})")
    loaded, seconds = load(engines(folder))
    tools = renders_tools(chat, source)
    passes: dict[str, list[float]] = {name: [] for name in loaded}
    for _ in range(4):
        chats = source.chats(round(megabytes * 1e6), tools=tools)
        texts = [chat.render(messages).text for messages in chats]
        for text in texts:
            chat.token_id(text)  # Python keeps the UTF-8 of a text: whoever is first would pay for all
        few = texts[: max(3, round(len(texts) * SHARE_OF_THE_LIBRARY))]
        for name, encode in loaded.items():
            passes[name].append(speed(encode, few if name == "tokenizers" else texts))
    warm = {name: statistics.median(figures[1:]) for name, figures in passes.items()}
    checked = [*HARD, *(text[:3_000] for text in texts)]
    sixty = "The function returns the number of items in the list, sorted"
    print(f"{'':12}  load s    cold    warm  x cold  x warm  60 B us 2 threads  wrong")
    row: Row = {}
    for name, encode in loaded.items():
        cold = passes[name][0]
        ratios = cold / passes["tokenizers"][0], warm[name] / warm["tokenizers"]
        empty = (lambda: chat.token_id("")) if name == "tokentape" else (lambda: len(sixty))
        faults = wrong(encode, loaded["tokenizers"], checked)
        row[name] = (*ratios, faults)
        both = threads(encode, few if name == "tokenizers" else texts[:60])
        print(
            f"{name:12} {seconds[name]:7.2f} {cold:7.1f} {warm[name]:7.1f} {ratios[0]:7.1f} {ratios[1]:7.1f} "
            f"{call(encode, empty, sixty):8.2f} {both:9.2f}  {faults} of {len(checked)}",
            flush=True,
        )
    return row


def main() -> None:
    """Measures every folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="*", metavar="MODEL_FOLDER")
    parser.add_argument("--all", type=Path, metavar="FOLDER", help="a folder of models: all of them")
    parser.add_argument("--megabytes", type=float, default=1.2, help="text of one pass")
    arguments = parser.parse_args()
    if _core.build_profile != "release":
        parser.error("this is a debug build; its figures mean nothing")
    names = ["tokenizers", "fastokens", "gigatoken", "tiktoken"]
    found = []
    for name in names:
        with contextlib.suppress(Exception):
            found.append(f"{name} {version(name)}")
    print(f"tokentape {tt.__version__}; {', '.join(found)}")
    os.environ["TOKENTAPE_CACHE"] = "off"
    folders = [*arguments.folders]
    folders += sorted(path.parent for path in arguments.all.glob("*/tokenizer.json")) if arguments.all else []
    summary({folder.name: measure(folder, Chats(seed), arguments.megabytes) for seed, folder in enumerate(folders)})


if __name__ == "__main__":
    main()
