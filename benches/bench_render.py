"""Render chats from Python objects: tokentape against transformers and minijinja, in one process.

    python benches/bench_render.py [CORPUS]

Every timed call gets fresh message objects with fresh text; templates are compiled once and warm. A figure is the
median over the corpus's templates and conversations that both engines render, of the ratio of the best of the repeats;
the engines take turns. On shared cores only ratios mean anything. What the call and the conversion of its objects take
is measured with a template that is one letter. *Cores*: how much less time `render_batch` takes on two cores than on
one, beside what two processes with a core each do in the same time: where other work takes the cores, neither is 2.
*Held* is the part of the work that holds the GIL.
"""

from __future__ import annotations

import copy
import json
import multiprocessing
import os
import random
import statistics
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import tokentape as tt
from tokentape import _core

REPEATS = 7
CASES = 400
BATCHES = 20
BATCH = 512
SPECIAL_TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}


def fresh(messages: list[dict[str, Any]], salt: int) -> list[dict[str, Any]]:
    """The same messages as new objects with text the process has not seen."""
    copied = copy.deepcopy(messages)
    for message in copied:
        if isinstance(message.get("content"), str):
            message["content"] = f"{message['content']} {salt}"
    return copied


def best(call: Any, inputs: list[Any]) -> float:
    times = []
    for item in inputs:
        start = time.perf_counter()
        call(item)
        times.append(time.perf_counter() - start)
    return min(times)


def minijinja_environment(source: str) -> Any:
    import minijinja

    environment = minijinja.Environment(trim_blocks=True, lstrip_blocks=True, pycompat=True)
    environment.add_template("t", source)
    environment.add_global("raise_exception", lambda message: (_ for _ in ()).throw(RuntimeError(message)))
    environment.add_global("strftime_now", lambda format: "")
    return environment


def measure(corpus: Path) -> dict[str, list[float]]:
    import transformers.utils.chat_template_utils as reference

    try:
        import minijinja  # noqa: F401
    except ImportError:
        minijinja_present = False
    else:
        minijinja_present = True
    conversations = json.loads((corpus / "conversations.json").read_text())
    names = sorted(path.name for path in (corpus / "templates").glob("*.jinja"))
    generator = random.Random(0)
    ratios: dict[str, list[float]] = {"transformers": [], "minijinja": [], "microseconds": [], "conversion": []}
    letter = tt.ChatTemplate("x")
    for _ in range(CASES):
        name, case = generator.choice(names), generator.choice(conversations)
        if case["continue_final_message"]:
            continue
        with (corpus / "templates" / name).open(newline="") as file:
            source = file.read()
        arguments = {name: value for name, value in case["kwargs"].items() if name != "__no_special__"}
        options = {**SPECIAL_TOKENS, **arguments}
        try:
            template = tt.ChatTemplate(source, special_tokens=SPECIAL_TOKENS)

            def ours(messages: Any) -> str:
                return template.render(messages, tools=case["tools"], documents=case["documents"], **arguments).text

            def theirs(messages: Any) -> str:
                return reference.render_jinja_template([messages], case["tools"], case["documents"], source, **options)[
                    0
                ][0]

            if ours(fresh(case["messages"], 0)) != theirs(fresh(case["messages"], 0)):
                continue
        except Exception:
            continue
        inputs = [[fresh(case["messages"], round * REPEATS + i + 1) for i in range(REPEATS)] for round in range(4)]
        mine, other = best(ours, inputs[0]), best(theirs, inputs[1])
        ratios["transformers"].append(other / mine)
        ratios["microseconds"].append(mine * 1e6)
        convert = lambda messages: letter.render(messages, tools=case["tools"], documents=case["documents"]).text  # noqa: E731
        ratios["conversion"].append(best(convert, inputs[3]) * 1e6)
        if minijinja_present:
            try:
                environment = minijinja_environment(source)
                given = {
                    "tools": case["tools"],
                    "documents": case["documents"],
                    "add_generation_prompt": False,
                    **options,
                }
                call = lambda messages: environment.render_template("t", messages=messages, **given)  # noqa: E731
                call(fresh(case["messages"], 0))
                ratios["minijinja"].append(best(call, inputs[2]) / mine)
            except Exception:
                continue
    return ratios


def batches(corpus: Path, cores: set[int]) -> tuple[float, float, float]:
    """Seconds of `render_batch` on these cores, seconds of the calling thread, and of all threads."""
    os.sched_setaffinity(0, cores)
    warnings.simplefilter("ignore")
    conversations = [case["messages"] for case in json.loads((corpus / "conversations.json").read_text())]
    names = sorted(path.name for path in (corpus / "templates").glob("*.jinja"))
    total = (0.0, 0.0, 0.0)
    for name in random.Random(0).sample(names, BATCHES):
        with (corpus / "templates" / name).open(newline="") as file:
            template = tt.ChatTemplate(file.read(), special_tokens=SPECIAL_TOKENS)
        good = [messages for messages in conversations if renders(template, messages)]
        times = []
        for salt in range(REPEATS if good else 0):
            batch = [fresh(good[index % len(good)], salt * BATCH + index) for index in range(BATCH)]
            starts = time.perf_counter(), time.thread_time(), time.process_time()
            results = template.render_batch(batch)
            ends = time.perf_counter(), time.thread_time(), time.process_time()
            times.append(tuple(end - start for start, end in zip(starts, ends, strict=True)))
            del results
        total = tuple(sum(pair) for pair in zip(total, min(times, default=(0.0,) * 3), strict=True))
    return total


def renders(template: tt.ChatTemplate, messages: Any) -> bool:
    try:
        template.render(messages)
    except tt.RenderError:
        return False
    return True


def threads(corpus: Path) -> None:
    """Prints what a second core gives to batches, and to two processes that have a core each."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    processes = multiprocessing.get_context("spawn")
    alone: list[set[int]] = [{core} for core in cores]
    together, apart, held = [], [], []
    for _ in range(3):
        found: list[list[tuple[float, float, float]]] = []
        for sets in (alone[:1], [set(cores)], alone):
            with processes.Pool(len(sets)) as pool:
                found.append(pool.starmap(batches, [(corpus, chosen) for chosen in sets], chunksize=1))
        ((one, *_),), ((both, thread, process),), each = found
        together.append(one / both)
        apart.append(sum(one / seconds for seconds, *_ in each))
        held.append(thread / process)
    print(
        f"render_batch: {statistics.median(together):.2f}x on {len(cores)} cores, where two processes do "
        f"{statistics.median(apart):.2f}x; {statistics.median(held):.0%} of the work held"
    )


def main() -> None:
    if _core.build_profile == "debug":
        sys.exit("a debug build measures nothing: build with --release")
    warnings.simplefilter("ignore")
    default = Path(__file__).parents[2] / "shared" / "corpus"
    corpus = Path(sys.argv[1] if sys.argv[1:] else os.environ.get("TOKENTAPE_CORPUS", default))
    ratios = measure(corpus)
    for peer in ("transformers", "minijinja"):
        values = sorted(ratios[peer])
        if values:
            tenth, median, ninetieth = (values[int(len(values) * q)] for q in (0.1, 0.5, 0.9))
            print(f"{peer}: {median:.1f}x (10 %: {tenth:.1f}x, 90 %: {ninetieth:.1f}x, {len(values)} cases)")
    call, conversion = (statistics.median(ratios[name]) for name in ("microseconds", "conversion"))
    print(f"tokentape: median {call:.1f} us a call, of which the call itself and the conversion {conversion:.1f} us")
    threads(corpus)


if __name__ == "__main__":
    main()
