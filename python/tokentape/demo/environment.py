"""A two-turn tool environment: the policy asks a calculator, reads its answer, and says the result.

Reward: 0.5 for a call that computes what was asked, 0.5 for a last turn that says the result.
"""

from __future__ import annotations

import random
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tokentape import Chat, Group, Trajectory, Turn
from tokentape.envs import Environment
from tokentape.envs.meter import Stopwatch
from tokentape.types import Completion, Sampling

__all__ = ["Calculator", "Question", "calculate", "questions"]

SYSTEM = (
    "You solve sums with a calculator. Ask it with CALC(expression) and nothing else. It answers with the result. "
    "Then give the answer in one sentence."
)
EXAMPLES: tuple[dict[str, Any], ...] = (
    {"role": "user", "content": "What is 12 + 30?"},
    {"role": "assistant", "content": "CALC(12 + 30)"},
    {"role": "tool", "content": "42"},
    {"role": "assistant", "content": "The answer is 42."},
)
CALL = re.compile(r"CALC\(([^)]*)\)")
SUM = re.compile(r"\s*(-?\d{1,9})\s*([-+*])\s*(-?\d{1,9})\s*")
REFUSAL = "error: the calculator understands whole numbers with +, - and *"


@dataclass(frozen=True, slots=True)
class Question:
    """An item: a sum, and its result.

    Attributes:
        id: The item's name.
        text: What the user asks.
        expression: What the calculator should be asked.
        answer: The right result.
    """

    id: str
    text: str
    expression: str
    answer: int


def questions(count: int, *, seed: int = 0) -> Iterator[Question]:
    """Sums of two whole numbers, the same for the same seed.

    Example:
        >>> next(questions(1)).id
        'sum-0'
    """
    source = random.Random(seed)  # noqa: S311 -- repeatable items, not secrets
    for index in range(count):
        sign = source.choice("+-*")
        left, right = (
            (source.randint(2, 9), source.randint(2, 9))
            if sign == "*"
            else (source.randint(10, 99), source.randint(10, 99))
        )
        expression = f"{left} {sign} {right}"
        answer = calculate(expression)
        yield Question(f"sum-{index}", f"What is {expression}?", expression, int(answer))


def calculate(expression: str) -> str:
    """What the calculator answers: the result of one sum, or that it does not understand.

    Example:
        >>> calculate("12 + 30"), calculate("import os")
        ('42', 'error: the calculator understands whole numbers with +, - and *')
    """
    found = SUM.fullmatch(expression)
    if found is None:
        return REFUSAL
    left, sign, right = int(found[1]), found[2], int(found[3])
    return str({"+": left + right, "-": left - right, "*": left * right}[sign])


class Calculator(Environment[Question]):
    """Plays each question in a group of rollouts.

    Args:
        chat: Template and tokenizer of the model.
        items: The questions.
        group_size: Rollouts of a question.
        sampling: How the policy samples one turn; each rollout has its own seed.
        stopwatch: Collects the time that calls of tokentape take.
    """

    def __init__(
        self,
        chat: Chat,
        items: Iterable[Question],
        *,
        group_size: int = 4,
        sampling: Sampling = Sampling(max_tokens=24),
        stopwatch: Stopwatch | None = None,
    ) -> None:
        super().__init__(chat, group_size=group_size, sampling=sampling)
        self._items = iter(items)
        self._rollouts: Counter[str] = Counter()
        self.stopwatch = stopwatch or Stopwatch()

    async def get_item(self) -> Question | None:
        """Give the next question."""
        return next(self._items, None)

    async def collect_trajectory(self, item: Question) -> Trajectory:
        """Play one rollout: a call, the calculator's answer, the last word."""
        opening = [{"role": "system", "content": SYSTEM}, *EXAMPLES, {"role": "user", "content": item.text}]
        rollout = f"{item.id}/{self._rollouts[item.id]}"
        self._rollouts[item.id] += 1
        with self.stopwatch:
            trajectory = self.chat.start(opening)
        said = await self._turn(trajectory, f"{rollout}/call")
        call = CALL.search(said)
        asked_right = call is not None and calculate(call[1]) == str(item.answer)
        if call is None:
            trajectory.reward = 0.0
            return trajectory
        with self.stopwatch:
            trajectory = trajectory.observe([{"role": "tool", "content": calculate(call[1])}])
        said = await self._turn(trajectory, f"{rollout}/answer")
        trajectory.reward = 0.5 * asked_right + 0.5 * (str(item.answer) in re.findall(r"-?\d+", said))
        return trajectory

    def make_group(self, item: Question, played: Sequence[Trajectory]) -> Group:
        """Group the rollouts of a question."""
        with self.stopwatch:
            return super().make_group(item, played)

    def record(self, trajectory: Trajectory, reply: Completion, sampling: Sampling) -> Turn:
        """Record a turn."""
        with self.stopwatch:
            return super().record(trajectory, reply, sampling)

    async def _turn(self, trajectory: Trajectory, name: str) -> str:
        """Let the policy act once, with a seed of its own, and return what it said, its reasoning left out."""
        prompt = trajectory.token_ids
        turn = await self.act(trajectory, sampling=replace(self.sampling, seed=zlib.crc32(name.encode())))
        with self.stopwatch:
            return self.chat.parse(turn.token_ids, prompt=prompt).content
