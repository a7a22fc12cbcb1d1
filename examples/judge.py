"""Two agents in one rollout: a writer, and a judge who grades what was written.

    tokentape collect judge:Slogans --model model.gguf --llama-cpp http://127.0.0.1:8080 --path judge.tape

Both are trained: the writer on the judge's grade, the judge on whether its grade fits a rule. A rollout holds one
trajectory an agent, and advantages compare writers with writers and judges with judges.
"""

from __future__ import annotations

import asyncio
import re

import tokentape as tt

PRODUCTS = ("an umbrella", "a bicycle", "a teapot")
WRITER = "You write slogans. Answer with one short sentence."
JUDGE = "You grade slogans from 1 to 5. Answer with the number and nothing else."
BEST, MIDDLE = 5, 3


class Slogans(tt.Environment[str]):
    """Has each product praised and judged, in a group of rollouts."""

    def __init__(self, chat: tt.Chat) -> None:
        super().__init__(chat, group_size=3, sampling=tt.Sampling(max_tokens=24))
        self.products = iter(PRODUCTS)

    async def get_item(self) -> str | None:
        """The next product."""
        return next(self.products, None)

    def item_id(self, item: str) -> str:
        """Items are named by their text."""
        return item

    async def collect_trajectories(self, item: str) -> tt.Group:
        """Write and judge side by side, and group all trajectories."""
        played = await asyncio.gather(*(self.rollout(item) for _ in range(self.group_size)))
        return self.make_group(item, [trajectory for rollout in played for trajectory in rollout])

    async def rollout(self, product: str) -> tuple[tt.Trajectory, tt.Trajectory]:
        """A slogan and its grade."""
        writer = self.chat.start(
            [{"role": "system", "content": WRITER}, {"role": "user", "content": f"A slogan for {product}."}],
            agent="writer",
        )
        written = await self.act(writer)
        slogan = self.chat.decode(written.token_ids, skip_special_tokens=True)
        judge = self.chat.start(
            [{"role": "system", "content": JUDGE}, {"role": "user", "content": slogan}],
            rollout=writer,  # the same episode
            agent="judge",
        )
        turn = await self.act(judge, sampling=tt.Sampling(max_tokens=6))
        grade = re.match(r"\s*([1-5])\b", self.chat.decode(turn.token_ids))
        is_named = product.rpartition(" ")[2] in slogan.lower()
        writer.reward = int(grade[1]) / BEST if grade else 0.0
        judge.reward = float(grade is not None and (int(grade[1]) >= MIDDLE) == is_named)
        return writer, judge
