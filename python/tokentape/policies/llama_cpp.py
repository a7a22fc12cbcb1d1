"""A llama.cpp server as a policy: prompt ids in, sampled ids and their logprobs out.

*Invariant*: a completion holds the ids that the server sampled after exactly the ids that were sent, with one finite
logprob each, sampled with exactly the settings that were asked for; a reply that does not prove this is an error.

llama.cpp knows no stop ids: it ends at the model's own end-of-generation tokens. A reply that runs past another id that
was asked for is cut behind it: ids and logprobs together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, Self, cast

import numpy as np

from tokentape.errors import ArgumentError
from tokentape.policies.distribution import sampled_logprob
from tokentape.policies.http import JsonServer
from tokentape.policies.llama_reply import NEUTRAL, RANDOM_SEED, Reply, field_of, read_reply
from tokentape.types import Completion, LogprobKind, Sampling, TokenIds

if TYPE_CHECKING:
    from tokentape.chat import Chat

__all__ = ["LlamaCpp"]

FINISH_REASONS = {"eos": "stop", "word": "stop", "limit": "length"}
PROBE = "Hello  wörld\n\t12345 <|im_start|> 你好 🙂 'll HTTPServer"
WHOLE_CHARACTER = "a"
LIKELY, ALL = 1024, 10_000_000
"""How many candidates to ask for when a logprob is missing: mostly the sampled one is among the first."""
STRIDE = 0x9E3779B1
"""What the seeds of a completion's chunks lie apart: far from the seeds of its neighbours in a group."""
FORCED = 1e6
"""A bias that no logit comes near."""


class LlamaCpp:
    """Samples from a llama.cpp server (`llama-server`, or the one inside the wheel `xllamacpp`), over `/completion`.

    llama.cpp gives no logprob for a token behind which the text ends inside a character, as the first part of an emoji
    does. Those are asked for again, each by one more token on the same prefix, and named in `metadata["rescored"]`.

    Args:
        url: `http://host:port`.
        logprobs: `"raw"`: what the model gives at temperature 1, whatever the temperature is; this is llama.cpp's own
            figure. `"processed"`: of the distribution that was sampled, after temperature, top_k and top_p.
        policy_version: The version of the weights that the server holds; change it when they change.
        timeout: Seconds that one reply may take.
        api_key: The server's key, if it was started with one.
        cache_prompt: Whether the server may reuse what it computed for an earlier prompt with the same beginning.
        chunk: The most tokens of one request; a longer completion goes on with a further one. A server may not see that
            a connection is closed before its reply is whole, so this bounds what it samples in vain when a task is
            cancelled, and behind a stop id. Each request has a seed of its own, made from the completion's.

    Raises:
        ArgumentError: no URL, a setting out of range, or the extra `http` is not installed.

    Example:
        >>> policy = LlamaCpp("http://127.0.0.1:8080", logprobs="processed")
        >>> policy.url
        'http://127.0.0.1:8080'
    """

    def __init__(
        self,
        url: str,
        *,
        logprobs: LogprobKind = "raw",
        policy_version: int | None = None,
        timeout: float = 600.0,
        api_key: str | None = None,
        cache_prompt: bool = True,
        chunk: int = 512,
    ) -> None:
        """Contact nothing yet."""
        if chunk < 1:
            raise ArgumentError(f"chunk is {chunk}: a request samples at least one token")
        if logprobs not in {"raw", "processed"}:
            raise ArgumentError(f"logprobs is {logprobs!r}: give 'raw' or 'processed'")
        headers = {"authorization": f"Bearer {api_key}"} if api_key else None
        self._server = JsonServer(url, kind="llama.cpp server", timeout=timeout, headers=headers)
        self.logprobs: LogprobKind = logprobs
        self.policy_version = policy_version
        self.cache_prompt = cache_prompt
        self.chunk = chunk
        self._whole: int | None = None

    @property
    def url(self) -> str:
        """The server's address."""
        return self._server.url

    async def complete(
        self, token_ids: TokenIds, *, sampling: Sampling = Sampling(), stop_token_ids: Sequence[int] = ()
    ) -> Completion:
        """Sample one completion.

        Raises:
            PolicyError: the server cannot be reached, refuses, or its reply lacks ids, logprobs or a setting.
        """
        [completion] = await self.complete_many(token_ids, 1, sampling=sampling, stop_token_ids=stop_token_ids)
        return completion

    async def complete_many(
        self,
        token_ids: TokenIds,
        count: int,
        *,
        sampling: Sampling = Sampling(),
        stop_token_ids: Sequence[int] = (),
    ) -> list[Completion]:
        """Sample several completions of one prompt, which the server reads once.

        Args:
            token_ids: The prompt.
            count: How many; no more than the server has slots.
            sampling: How to sample. With a seed, completion `i` has seed `seed + i`.
            stop_token_ids: Each completion ends behind the first of these ids.

        Raises:
            PolicyError: as for `complete`.
        """
        prompt = np.asarray(token_ids, dtype=np.int32).tolist()
        stops = frozenset(int(token) for token in stop_token_ids)

        async def finish(reply: Reply) -> Completion:
            return await self._completion(await self._extend(reply, prompt, sampling, stops), prompt, sampling, stops)

        replies = await self._replies(prompt, count, sampling)
        return list(await asyncio.gather(*(finish(reply) for reply in replies)))

    async def check(self, chat: Chat) -> None:
        """Make sure that the server holds the model whose tokenizer the chat has.

        Raises:
            PolicyError: it encodes a text into other ids, or gives no usable answer.
        """
        theirs = await self._tokenize(PROBE)
        ours = chat.encode(PROBE).tolist()
        if theirs != ours:
            self._refuse(
                f"it holds another model than the chat: {PROBE!r} is {theirs} there and {ours} here; start it with the "
                "model that the chat was made from, or make the chat from the server's GGUF file"
            )

    async def close(self) -> None:
        """Close the connections."""
        await self._server.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _replies(self, prompt: list[int], count: int, sampling: Sampling) -> list[Reply]:
        """The first chunks of `count` completions."""
        asked = self._request(prompt, sampling) | ({"n_cmpl": count} if count != 1 else {})
        answer = await self._server.post("/completion", asked)
        values = cast("list[Any]", answer if isinstance(answer, list) else [answer])
        if len(values) != count:
            self._refuse(f"it gave {len(values)} completions where {count} were asked for")
        values.sort(key=lambda value: field_of(value, "index") or 0)
        return [read_reply(value, asked, index, self._refuse) for index, value in enumerate(values)]

    async def _extend(self, reply: Reply, prompt: list[int], sampling: Sampling, stops: frozenset[int]) -> Reply:
        """The reply with its further chunks, up to its end, a stop id, or the most tokens that were asked for."""
        whole, chunks = reply, 1
        while reply.is_cut and len(whole.ids) < sampling.max_tokens and stops.isdisjoint(reply.ids):
            left = sampling.max_tokens - len(whole.ids)
            seed = None if whole.seed is None or sampling.seed is None else (whole.seed + chunks * STRIDE) % RANDOM_SEED
            further = replace(sampling, max_tokens=left, seed=seed)
            [reply] = await self._replies(prompt + whole.ids, 1, further)
            whole = replace(reply, ids=whole.ids + reply.ids, logprobs=whole.logprobs + reply.logprobs, seed=whole.seed)
            chunks += 1
        return whole

    def _request(self, prompt: list[int], sampling: Sampling) -> dict[str, Any]:
        if sampling.seed is not None and not 0 <= sampling.seed < RANDOM_SEED:
            raise ArgumentError(f"seed is {sampling.seed}: llama.cpp takes seeds from 0 to {RANDOM_SEED - 1}")
        return {
            **NEUTRAL,
            "prompt": prompt,
            "n_predict": min(sampling.max_tokens, self.chunk),
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
            "seed": RANDOM_SEED if sampling.seed is None else sampling.seed,
            "n_probs": 1,
            "post_sampling_probs": self.logprobs == "processed",
            "return_tokens": True,
            "cache_prompt": self.cache_prompt,
            "stream": False,
        }

    async def _completion(
        self, reply: Reply, prompt: list[int], sampling: Sampling, stops: frozenset[int]
    ) -> Completion:
        end = next((at + 1 for at, token in enumerate(reply.ids) if token in stops), None)
        ids, given = reply.ids[:end], reply.logprobs[:end]
        missing = [at for at, value in enumerate(given) if value is None]
        scores = await asyncio.gather(*(self._score(prompt + ids[:at], ids[at], sampling) for at in missing))
        found = dict(zip(missing, scores, strict=True))
        metadata: dict[str, Any] = {"server": "llama.cpp", "model": reply.model, "seed": reply.seed}
        return Completion(
            ids,
            [found[at] if value is None else value for at, value in enumerate(given)],
            finish_reason="stop" if end else FINISH_REASONS.get(reply.stop_type, reply.stop_type),
            policy_version=self.policy_version,
            logprob_kind=self.logprobs,
            temperature=sampling.temperature,
            metadata=metadata | ({"rescored": missing} if missing else {}),
        )

    async def _score(self, prefix: list[int], token: int, sampling: Sampling) -> float:
        """The logprob of a token behind a prefix, as the server would have given it.

        One more token is sampled there: one that is a whole character, so that the server tells its candidates. Their
        figures are of the model's own distribution, which the bias that forces this token does not touch.
        """
        whole = await self._whole_character()
        asked = self._request(prefix, replace(sampling, max_tokens=1, temperature=0.0, top_p=1.0, top_k=0))
        asked |= {"post_sampling_probs": False, "logit_bias": [[whole, FORCED]]}
        alike = self.logprobs == "raw" or (sampling.temperature == 1 and sampling.top_p == 1 and sampling.top_k == 0)
        for count in (LIKELY, ALL) if alike else (ALL,):
            answer = await self._server.post("/completion", asked | {"n_probs": count})
            known = self._candidates(answer)
            if token in known:
                return known[token] if alike else sampled_logprob(known, token, sampling)
        return self._refuse(f"it gives no logprob for token {token}, which it sampled")

    def _candidates(self, answer: Any) -> dict[int, float]:
        entries = field_of(answer, "completion_probabilities")
        top = field_of(entries[0], "top_logprobs") if isinstance(entries, list) and entries else None
        if not isinstance(top, list):
            self._refuse("it gives no `completion_probabilities` for a single token: there are no logprobs")
        found = {field_of(one, "id"): field_of(one, "logprob") for one in cast("list[Any]", top)}
        return {token: value for token, value in found.items() if isinstance(value, float | int) and value > -np.inf}

    async def _whole_character(self) -> int:
        if self._whole is None:
            self._whole = (await self._tokenize(WHOLE_CHARACTER))[-1]
        return self._whole

    async def _tokenize(self, text: str) -> list[int]:
        body = {"content": text, "add_special": False, "parse_special": True}
        ids = field_of(await self._server.post("/tokenize", body), "tokens")
        if not isinstance(ids, list) or not ids:
            self._refuse("its /tokenize gives no `tokens`: is it llama.cpp?")
        return cast("list[int]", ids)

    def _refuse(self, what: str) -> NoReturn:
        self._server.fail(what, transient=False)
