"""Writes the completions that the demo replays where no model is at hand: `python tests/tools/record_demo.py`.

A scripted policy plays the calculator demo: it asks and answers rightly most of the time. Its logprobs are those of its
own choices.
"""

from __future__ import annotations

import asyncio
import math
import random
import re
from pathlib import Path

from tokentape.demo import Calculator, small_chat
from tokentape.demo.environment import questions
from tokentape.demo.replay import COMPLETIONS, GROUP_SIZE, ITEMS
from tokentape.envs import collect
from tokentape.policies import Recording
from tokentape.types import Completion, Sampling

CORRECT = 0.7


class Scripted:
    """Samples one of a few texts with known probabilities."""

    async def complete(self, token_ids, *, sampling=Sampling(), stop_token_ids=()):
        source = random.Random(sampling.seed)
        text = self.say(small_chat().decode(token_ids), source)
        ids = [*small_chat().encode(text).tolist(), stop_token_ids[0]]
        ids = ids[: sampling.max_tokens]
        share = [source.uniform(0.01, 1.0) for _ in ids]
        total = math.log(CORRECT) / sum(share)
        reason = "stop" if ids[-1] == stop_token_ids[0] else "length"
        return Completion(ids, [total * part for part in share], finish_reason=reason)

    @staticmethod
    def say(prompt: str, source: random.Random) -> str:
        right = source.random() < CORRECT
        result = re.search(r"<\|im_start\|>tool\n(.*)<\|im_end\|>\n<\|im_start\|>assistant\n$", prompt)
        if result:
            return f"The answer is {result[1] if right else source.randint(2, 99)}."
        asked = re.findall(r"What is (.*)\?", prompt)[-1]
        if right:
            return f"CALC({asked})"
        return source.choice([f"CALC({asked}0)", f"CALC(the sum of {asked})", "The answer is 42."])


if __name__ == "__main__":
    recording = Recording(Scripted())
    env = Calculator(small_chat(), questions(ITEMS), group_size=GROUP_SIZE)
    asyncio.run(collect(env, recording))
    recording.save(COMPLETIONS)
    print(f"{len(recording.records)} completions in {Path(COMPLETIONS).resolve()}")
