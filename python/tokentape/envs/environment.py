"""The environment: gives items, lets policies act on them, scores what happened, returns groups of literal tokens.

*Invariant*: an environment holds no state of the runner; what happens to one item is told through the item's own
attempt, so items may run side by side.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar, cast

from tokentape import Chat, Group, Trajectory, Turn
from tokentape.envs import attempt
from tokentape.errors import ArgumentError
from tokentape.types import Completion, Policy, Sampling

__all__ = ["PAUSE", "Collected", "Environment", "Policies", "Result"]

Item = TypeVar("Item")
"""What an environment works on: anything."""

Policies: TypeAlias = Policy | Mapping[str, Policy]
"""One policy, or several by name; the first of them, or the one named `default`, is `Environment.policy`."""


class _Pause(enum.Enum):
    PAUSE = "PAUSE"


PAUSE: Final = _Pause.PAUSE
"""What `get_item` returns when it has nothing now but will have: the runner asks again shortly."""


@dataclass(frozen=True, slots=True)
class Collected(Generic[Item]):
    """Groups, and further items that they gave rise to.

    Attributes:
        groups: The finished groups of an item.
        backlog: Items to work on before the next one is fetched.
    """

    groups: Sequence[Group] = ()
    backlog: Sequence[Item] = field(default_factory=list[Item])


Result: TypeAlias = Group | Sequence[Group] | Collected[Item] | None
"""What `collect_trajectories` may return; None: the item is dropped, with the reason given to `Environment.drop`."""


class Environment(Generic[Item]):
    """Subclass it, and write `get_item` and one of `collect_trajectories` and `collect_trajectory`.

    Args:
        chat: Template and tokenizer of the model; environments of base models need none.
        group_size: Rollouts of one item, at least 1.
        sampling: How `self.policy` is asked to sample, for the environment's own use.

    Attributes:
        name: Written into the column `env`; the class name unless set.
        policy: The policy, or the first of several; there once `collect` has begun.
        policies: All policies by name.

    Example:
        >>> class Guess(Environment):
        ...     async def get_item(self):
        ...         return None
        ...
        ...     async def collect_trajectory(self, item): ...
        >>> Guess(group_size=4).name
        'Guess'
    """

    name: str = ""
    policy: Policy
    policies: Mapping[str, Policy]

    def __init__(self, chat: Chat | None = None, *, group_size: int = 8, sampling: Sampling = Sampling()) -> None:
        """Keep the settings; policies arrive with `bind`, data is loaded in `setup`."""
        if group_size < 1:
            msg = f"group_size is {group_size}: a group has at least one rollout"
            raise ArgumentError(msg)
        self._chat = chat
        self.group_size = group_size
        self.sampling = sampling
        self.name = type(self).name or type(self).__name__

    @property
    def chat(self) -> Chat:
        """Template and tokenizer.

        Raises:
            ArgumentError: the environment was made without.
        """
        if self._chat is None:
            msg = f"{self.name} has no chat: make it with {type(self).__name__}(chat, ...)"
            raise ArgumentError(msg)
        return self._chat

    def bind(self, policies: Policies) -> None:
        """Give the environment its policies; `collect` does so before `setup`.

        Raises:
            ArgumentError: an empty mapping.
        """
        named = policies if isinstance(policies, Mapping) else {"default": policies}
        if not named:
            msg = "no policies: give one, or a mapping of at least one name"
            raise ArgumentError(msg)
        self.policies = dict(named)
        self.policy = self.policies.get("default") or next(iter(self.policies.values()))

    async def setup(self, policies: Mapping[str, Policy]) -> None:
        """Load data and start what the environment needs; called once, with `self.policy` already there."""

    async def get_item(self) -> Item | Literal[_Pause.PAUSE] | None:
        """Give the next item, PAUSE to be asked again, or None when there are no more.

        An interrupted run asks from the start again and skips what is finished, so give items in a repeatable order
        or with an id (`item_id`).
        """
        raise NotImplementedError(self._unwritten("get_item"))

    async def collect_trajectories(self, item: Item) -> Result[Item]:
        """Play an item to the end: inference and scoring in one.

        The default plays `group_size` rollouts with `collect_trajectory` side by side. A rollout that fails is tried
        again; if it still fails it is counted as dropped and the rest of the group stays. Advantages are GRPO's.
        """
        played = await attempt.rollouts(lambda: self.collect_trajectory(item), self.group_size)
        if not played:
            return self.drop("no rollout of the group is left")
        return self.make_group(item, played)

    def make_group(self, item: Item, played: Sequence[Trajectory]) -> Group:
        """Make the group of an item's rollouts; the default gives it the item's id and the advantages of GRPO."""
        return Group(list(played), id=self.item_id(item) or attempt.key(), env=self.name).with_advantages("grpo")

    async def collect_trajectory(self, item: Item) -> Trajectory | None:
        """Play one rollout of an item, and return it with its reward; None drops the rollout."""
        raise NotImplementedError(self._unwritten("collect_trajectories or collect_trajectory"))

    async def act(
        self,
        trajectory: Trajectory,
        *,
        policy: Policy | None = None,
        sampling: Sampling | None = None,
        stop_token_ids: Sequence[int] | None = None,
    ) -> Turn:
        """Let a policy sample the next turn of a trajectory, and record it.

        Args:
            trajectory: What to continue.
            policy: Who samples; `self.policy` by default.
            sampling: How; `self.sampling` by default.
            stop_token_ids: What ends the turn; by default what ends a turn of the chat, if there is one.

        Raises:
            PolicyError: the policy gave no usable completion; the trajectory is as it was.
        """
        sampling = sampling or self.sampling
        if stop_token_ids is None:
            stop_token_ids = self._chat.stop_token_ids if self._chat else ()
        ask = (policy or self.policy).complete
        reply = await ask(trajectory.token_ids, sampling=sampling, stop_token_ids=stop_token_ids)
        return self.record(trajectory, reply, sampling)

    def record(self, trajectory: Trajectory, reply: Completion, sampling: Sampling) -> Turn:
        """Put a completion on the tape, and how it was sampled into the row's provenance.

        Provenance then has `sampling`, `policy` (what the policy tells about itself), the `seeds` of the turns that
        have one, and `rescored`: the tokens whose logprobs were not given with them but asked for afterwards.
        """
        turn = trajectory.act(
            reply.token_ids,
            reply.logprobs,
            finish_reason=reply.finish_reason,
            policy_version=reply.policy_version,
            logprob_kind=None if reply.logprobs is None else reply.logprob_kind,
        )
        told, policy = trajectory.provenance, dict(reply.metadata)
        rescored = [turn.start + int(at) for at in policy.pop("rescored", ())]
        policy.pop("seed", None)
        lists = {
            "seeds": [*told.get("seeds", ()), *([] if sampling.seed is None else [sampling.seed])],
            "rescored": [*told.get("rescored", ()), *rescored],
        }
        notes = {
            "sampling": sampling.to_json() | {"seed": None},
            **{name: found for name, found in lists.items() if found},
        }
        trajectory.note(notes | ({"policy": policy} if policy else {}))
        return turn

    async def evaluate(self) -> Mapping[str, float]:
        """Measure the policy on items of the environment's own choice; figures by name."""
        return {}

    async def close(self) -> None:
        """Release what `setup` took; called once, also after an error."""

    def drop(self, reason: str) -> None:
        """Count the current item, or the current rollout of `collect_trajectory`, as dropped.

        Returns None, so that `return self.drop("reason")` reads as one thing.
        """
        attempt.drop(reason)

    def item_id(self, item: Item) -> str | None:
        """The item's own name, for resuming and for `Group.id`; by default its field or key `id`, else None."""
        if isinstance(item, Mapping):
            name = cast("Mapping[str, Any]", item).get("id")
        else:
            name = getattr(cast("object", item), "id", None)
        return None if name is None else str(name)

    def dump_item(self, item: Item) -> Any:
        """A backlog item as JSON values, kept so that an interrupted run can go on with it; by default itself."""
        return item

    def load_item(self, data: Any) -> Item:
        """The backlog item that `dump_item` gave."""
        return data

    def _unwritten(self, what: str) -> str:
        return f"{type(self).__name__} does not define {what}"
