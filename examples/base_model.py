"""No chat template at all: a base model completes lines, and single tokens are weighted.

    tokentape collect base_model:Facts --model model.gguf --llama-cpp http://127.0.0.1:8080 --path facts.tape

A prompt is ids, and so is what comes back. A line that repeats itself is shown as what is bad: its tokens get negative
weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import tokentape as tt

SHOTS = "The capital of Italy is Rome.\nThe capital of Spain is Madrid.\nThe capital of {country} is"
CAPITALS = {"France": "Paris", "Germany": "Berlin", "Japan": "Tokyo", "Egypt": "Cairo"}


@dataclass
class Country:
    """An item."""

    id: str
    capital: str


class Facts(tt.Environment[Country]):
    """Completes one line for each country, in a group of rollouts."""

    def __init__(self, chat: tt.Chat) -> None:
        super().__init__(chat, group_size=4, sampling=tt.Sampling(max_tokens=8))
        self.countries = iter(Country(*pair) for pair in CAPITALS.items())
        self.line_end = int(chat.encode("\n")[-1])

    async def get_item(self) -> Country | None:
        """The next country."""
        return next(self.countries, None)

    async def collect_trajectory(self, item: Country) -> tt.Trajectory:
        """One rollout: up to the end of the line."""
        prompt = self.chat.encode(SHOTS.format(country=item.id))
        trajectory = tt.Trajectory.from_prompt(prompt, vocab_size=self.chat.vocab_size)
        turn = await self.act(trajectory, stop_token_ids=[self.line_end])
        said = self.chat.decode(turn.token_ids)
        trajectory.reward = float(item.capital in said)
        if len(set(turn.token_ids.tolist())) < len(turn.token_ids) / 2:
            trajectory.loss_weight = np.where(trajectory.sampled_mask, -0.5, 0.0).astype(np.float32)
        return trajectory
