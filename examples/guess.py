"""Many turns with a tool: find a number by asking whether it is higher or lower.

    tokentape collect guess:Guess --model model.gguf --llama-cpp http://127.0.0.1:8080 --path guess.tape --groups 8

The policy calls `CHECK(n)`, reads the answer, and calls again. Each turn that halves what is left earns a little;
finding the number earns the rest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import tokentape as tt

LOWEST, HIGHEST, TURNS = 1, 20, 5
RULES = f"Find the secret number from {LOWEST} to {HIGHEST}. Say CHECK(n) and nothing else."
EXAMPLE = [
    {"role": "user", "content": "Begin."},
    {"role": "assistant", "content": "CHECK(10)"},
    {"role": "tool", "content": "higher"},
    {"role": "assistant", "content": "CHECK(15)"},
    {"role": "tool", "content": "right"},
]


@dataclass
class Secret:
    """An item: the number to find."""

    number: int

    @property
    def id(self) -> str:
        """The item's name: an interrupted run goes on where it ended."""
        return f"secret-{self.number}"


class Guess(tt.Environment[Secret]):
    """Plays each secret in a group of rollouts."""

    def __init__(self, chat: tt.Chat) -> None:
        super().__init__(chat, group_size=2, sampling=tt.Sampling(max_tokens=12))
        self.secrets = iter(range(LOWEST, HIGHEST + 1, 3))

    async def get_item(self) -> Secret | None:
        """The next secret; None ends the run."""
        number = next(self.secrets, None)
        return None if number is None else Secret(number)

    async def collect_trajectory(self, item: Secret) -> tt.Trajectory:
        """One rollout: up to five guesses, each answered by the tool."""
        opening = [{"role": "system", "content": RULES}, *EXAMPLE, {"role": "user", "content": "Begin."}]
        trajectory = self.chat.start(opening)
        reward = 0.0
        for number in range(TURNS):
            turn = await self.act(trajectory)
            call = re.search(r"CHECK\((\d+)\)", self.chat.decode(turn.token_ids))
            if call is None:
                break  # no call: the rollout ends with what it has earned
            guess = int(call[1])
            if guess == item.number:
                reward = 1.0
                break
            reward += 0.1 * (abs(guess - item.number) < (HIGHEST - LOWEST) / 2 ** (number + 1))
            if number == TURNS - 1:
                break  # nothing is sampled after this: the tape ends with the policy's own words
            answer = "higher" if guess < item.number else "lower"
            trajectory = trajectory.observe([{"role": "tool", "content": answer}])
        trajectory.reward = reward
        return trajectory
