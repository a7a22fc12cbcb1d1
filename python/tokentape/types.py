"""The plain shapes that cross the border of the package: messages, sampling, completions, policies.

*Invariant*: a `Completion` holds as many logprobs as ids, or none at all; its arrays are read-only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NotRequired, Protocol, TypeAlias, TypedDict, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from tokentape.errors import ArgumentError, PolicyError

__all__ = [
    "Completion",
    "FunctionCall",
    "LogprobKind",
    "Message",
    "Policy",
    "Sampling",
    "TokenIds",
    "ToolCall",
]

_Array = TypeVar("_Array", bound=npt.NDArray[Any])

TokenIds: TypeAlias = npt.NDArray[np.int32] | Sequence[int]
"""Token ids, one dimension: numpy int32 inside the package, any sequence of integers at its border."""

LogprobKind: TypeAlias = Literal["raw", "processed"]
"""What a logprob is of: `raw` the model's own distribution at temperature 1, `processed` the one that was sampled."""


class FunctionCall(TypedDict):
    """The function that a tool call names, and its arguments (a mapping, or JSON text as some templates want it)."""

    name: str
    arguments: Mapping[str, Any] | str


class ToolCall(TypedDict):
    """One call of a tool inside an assistant message."""

    id: NotRequired[str]
    type: NotRequired[Literal["function"]]
    function: FunctionCall


class Message(TypedDict, total=False):
    """One message of a conversation, as chat templates read it; templates may read further keys."""

    role: str
    content: str | Sequence[Mapping[str, Any]] | None
    reasoning_content: str
    tool_calls: Sequence[ToolCall]
    tool_call_id: str
    name: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a policy samples.

    Attributes:
        max_tokens: The most tokens of one completion, at least 1.
        temperature: 0 is greedy; 1 samples the model's own distribution.
        top_p: Nucleus; 1 keeps all.
        top_k: The most likely tokens that are kept; 0 keeps all.
        seed: Makes a completion repeatable where the server can; None leaves it to the server.

    Example:
        >>> Sampling(max_tokens=64, seed=7).temperature
        1.0
    """

    max_tokens: int = 1024
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None

    def __post_init__(self) -> None:
        """Refuse what no sampler can do."""
        if self.max_tokens < 1:
            msg = f"max_tokens is {self.max_tokens}: a completion has at least one token"
            raise ArgumentError(msg)
        if not 0 <= self.temperature < float("inf"):
            msg = f"temperature is {self.temperature}: give 0 (greedy) or a positive number"
            raise ArgumentError(msg)
        if not 0 < self.top_p <= 1 or self.top_k < 0:
            msg = f"top_p is {self.top_p} and top_k {self.top_k}: give 0 < top_p <= 1 and top_k >= 0 (0 keeps all)"
            raise ArgumentError(msg)

    def to_json(self) -> dict[str, Any]:
        """The settings as a mapping of JSON values, as provenance stores them."""
        return asdict(self)


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Completion:
    """What a policy sampled after a prompt, literally.

    Attributes:
        token_ids: The sampled ids, int32 of shape (n,), the stop token included if it was sampled.
        logprobs: Natural logarithms, float32 of shape (n,), one for each id; None if the policy gives none.
        finish_reason: `stop`, `length`, `abort`, or the server's own word.
        policy_version: The version of the weights, as the policy counts; None if it does not.
        logprob_kind: Whether the logprobs are before (`raw`) or after (`processed`) temperature and cuts.
        temperature: The temperature in force.
        metadata: What else the policy tells about this completion (JSON values); never read by the package.

    Raises:
        PolicyError: ids that are no int32 or logprobs of another length.

    Example:
        >>> Completion([5, 2], [-0.1, -0.2], finish_reason="stop").token_ids.dtype
        dtype('int32')
    """

    token_ids: npt.NDArray[np.int32]
    logprobs: npt.NDArray[np.float32] | None
    finish_reason: str
    policy_version: int | None
    logprob_kind: LogprobKind
    temperature: float
    metadata: Mapping[str, Any]

    def __init__(
        self,
        token_ids: TokenIds,
        logprobs: npt.ArrayLike | None = None,
        *,
        finish_reason: str = "stop",
        policy_version: int | None = None,
        logprob_kind: LogprobKind = "processed",
        temperature: float = 1.0,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Copy ids and logprobs into arrays of their own and check that they agree."""
        ids = _token_ids(token_ids)
        put = object.__setattr__
        put(self, "token_ids", ids)
        put(self, "logprobs", None if logprobs is None else _logprobs(logprobs, len(ids)))
        put(self, "finish_reason", finish_reason)
        put(self, "policy_version", policy_version)
        put(self, "logprob_kind", logprob_kind)
        put(self, "temperature", temperature)
        put(self, "metadata", dict(metadata or {}))

    def to_json(self) -> dict[str, Any]:
        """The completion as a mapping of JSON values; `Completion(**completion.to_json())` is equal to it.

        Logprobs are printed as the shortest decimals that give the same float32 again.
        """
        logprobs = None if self.logprobs is None else [float(str(value)) for value in self.logprobs]
        return {
            "token_ids": self.token_ids.tolist(),
            "logprobs": logprobs,
            "finish_reason": self.finish_reason,
            "policy_version": self.policy_version,
            "logprob_kind": self.logprob_kind,
            "temperature": self.temperature,
            "metadata": dict(self.metadata),
        }


@runtime_checkable
class Policy(Protocol):
    """What samples: a server, a model in the process, a file of recorded completions.

    Example:
        >>> class Constant:
        ...     async def complete(self, token_ids, *, sampling=Sampling(), stop_token_ids=()):
        ...         return Completion([2], [-0.5])
        >>> isinstance(Constant(), Policy)
        True
    """

    async def complete(
        self, token_ids: TokenIds, *, sampling: Sampling = ..., stop_token_ids: Sequence[int] = ...
    ) -> Completion:
        """Sample one completion of a prompt.

        Args:
            token_ids: The prompt: literal ids, sent as they are.
            sampling: How to sample.
            stop_token_ids: Sampling ends after one of these ids, which stays in the completion.

        Raises:
            PolicyError: the policy, or the server behind it, gave no usable completion.
        """
        ...


def _token_ids(token_ids: TokenIds) -> npt.NDArray[np.int32]:
    ids = np.asarray(token_ids)
    if ids.size == 0:
        ids = ids.astype(np.int32)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        msg = f"the ids of a completion are {ids.dtype} of shape {ids.shape}: give one dimension of integers"
        raise PolicyError(msg)
    if ids.size and not 0 <= ids.min() <= ids.max() <= np.iinfo(np.int32).max:
        msg = f"the ids of a completion reach from {ids.min()} to {ids.max()}: ids are int32 from 0"
        raise PolicyError(msg)
    return _frozen(ids.astype(np.int32))


def _logprobs(logprobs: npt.ArrayLike, count: int) -> npt.NDArray[np.float32]:
    try:
        values = np.asarray(logprobs, dtype=np.float32)
    except (TypeError, ValueError) as error:
        msg = f"the logprobs of a completion are not numbers ({error}): a null is a missing logprob, not a value"
        raise PolicyError(msg) from None
    if values.shape != (count,):
        msg = f"a completion has {count} ids but logprobs of shape {values.shape}: each sampled id needs one"
        raise PolicyError(msg)
    if not np.isfinite(values).all():
        index = int(np.flatnonzero(~np.isfinite(values))[0])
        msg = f"logprob {index} of a completion is {values[index]}: it must be finite"
        raise PolicyError(msg)
    return _frozen(values.copy() if values is logprobs else values)


def _frozen(array: _Array) -> _Array:
    array.setflags(write=False)
    return array
