"""Trainers of other projects in tests: their own code on the CPU, and the objective that it has to compute.

They are installed without their dependencies (`make test-torch`). What a module imports and these tests do not use, as
ray, stands in as an empty module while that module is imported.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import importlib.util
import logging
import os
import sys
import types
import typing
import warnings

import numpy as np
import pytest

#: What verl imports and neither its batches nor its losses use.
VERL = ("ray", "codetiming", "PIL", "cachetools", "hydra", "omegaconf", "torchdata")
#: What AReaL imports and neither its actor's loss nor its trees use.
AREAL = (
    "PIL", "aiofiles", "aiohttp", "colorlog", "einops", "flask", "hydra", "lark", "numba", "pybase64", "ray", "swanlab",
    "tabulate", "tenacity", "tensorboardX", "torchdata", "trackio", "uvloop", "wandb", "werkzeug", "omegaconf",
)  # fmt: skip


class _Anything(type):
    """The type of a name that nobody uses: it has all attributes, can be called, subscripted and derived from."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent


class Absent(metaclass=_Anything):
    """What stands in for any name of an absent module; as a decorator it gives back what it decorates."""

    def __new__(cls, *given, **_):
        return given[0] if len(given) == 1 and callable(given[0]) else super().__new__(cls)

    def __init__(self, *_, **__):
        """Takes anything."""

    def __init_subclass__(cls, **_):
        """Takes anything."""

    def __class_getitem__(cls, _):
        return cls

    def __call__(self, *given, **_):
        return given[0] if len(given) == 1 and callable(given[0]) else self

    def __bool__(self):
        return False

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent


class _Module(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent


class _Finder:
    """Finds modules that are not installed; what is installed is found before it is asked."""

    def __init__(self, names):
        self.names, self.found = set(names), []

    def find_spec(self, name, _path=None, _target=None):
        if name.partition(".")[0] not in self.names:
            return None
        self.found.append(name)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        return _Module(spec.name)

    def exec_module(self, _module):
        """There is nothing to run."""


@contextlib.contextmanager
def standing_in(*names):
    """Modules that stand in for those which are not installed; afterwards they and what an import changed are gone."""
    finder = _Finder(names)
    sys.meta_path.append(finder)
    masks = importlib.import_module("transformers.masking_utils")
    level, environment, mask = logging.root.level, dict(os.environ), masks._preprocess_mask_arguments
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.meta_path.remove(finder)
        for name in finder.found:
            sys.modules.pop(name, None)
        logging.root.setLevel(level)
        os.environ.clear()
        os.environ.update(environment)
        masks._preprocess_mask_arguments = mask  # ART replaces it by one for older transformers


def trainer(module, *absent, monkeypatch=None):
    """A module of a trainer; the test is skipped where the trainer is not installed."""
    if importlib.util.find_spec(module.partition(".")[0]) is None:
        pytest.skip(f"{module.partition('.')[0]} is not installed: see `make test-torch`")
    if monkeypatch is not None and sys.version_info < (3, 12):  # pydantic refuses the older one
        monkeypatch.setattr(typing, "TypedDict", importlib.import_module("typing_extensions").TypedDict)
    with standing_in(*absent):
        return importlib.import_module(module)


def small_model():
    """A Llama of two layers, without dropout."""
    torch, transformers = importlib.import_module("torch"), importlib.import_module("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=61, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, use_cache=False
    )
    return transformers.LlamaForCausalLM(config).eval()


def group_rows(model, *, groups=2, size=3, turns=2, seed=0):
    """Groups of one prompt each. A row has `turns` sampled turns with an observation between.

    Its logprobs are near those of the model, and its reward is its advantage.
    """
    draw = np.random.default_rng(seed)
    rows = []
    for group in range(groups):
        prompt = draw.integers(3, 61, 6 + group)
        for rollout in range(size):
            parts = [(prompt, 0)]
            for turn in range(turns):
                parts += [(draw.integers(3, 61, 3), 0)] if turn else []
                parts.append((draw.integers(3, 61, 3 + rollout), 1))
            ids = np.concatenate([part for part, _ in parts]).astype(np.int32)
            mask = np.concatenate([np.full(len(part), sampled) for part, sampled in parts]).astype(np.uint8)
            old = np.append(0.0, own_logprobs(model, ids).detach().numpy()) + draw.normal(0, 0.3, len(ids))
            reward = float(np.float32(draw.normal()))
            rows.append({
                "token_ids": ids, "sampled_mask": mask, "logprobs": np.minimum(old, 0).astype(np.float32) * mask,
                "advantages": mask * np.float32(reward), "reward": reward,
                "group_id": f"item-{group}", "rollout_id": f"{group}-{rollout}", "trajectory_id": f"{group}-{rollout}",
            })  # fmt: skip
    return rows


def own_logprobs(model, ids):
    """The logprob of each token but the first, of one row alone."""
    torch = importlib.import_module("torch")
    given = torch.as_tensor(np.asarray(ids), dtype=torch.int64)[None]
    return model(input_ids=given).logits[0, :-1].log_softmax(-1).gather(1, given[0, 1:, None])[:, 0]


def grpo(rows, *, ddof, epsilon=0.0):
    """The advantage of each row: its reward less the mean of its group, over the deviation."""
    found = []
    for row in rows:
        rewards = np.array([other["reward"] for other in rows if other["group_id"] == row["group_id"]])
        found.append((row["reward"] - rewards.mean()) / (rewards.std(ddof=ddof) + epsilon))
    return found


def clipped(model, rows, advantages, *, clip=0.2, over="tokens", atropos=False):
    """The clipped objective of the rows one by one: the mean over all trained tokens, or over rows of their means.

    Atropos takes the larger of both terms where the advantage is negative, all others the smaller.
    """
    torch = importlib.import_module("torch")
    sums, counts = [], []
    for row, advantage in zip(rows, advantages, strict=True):
        mask = torch.as_tensor(row["sampled_mask"][1:].astype(np.float32))
        ratio = (own_logprobs(model, row["token_ids"]) - torch.as_tensor(row["logprobs"][1:])).exp()
        bound = torch.maximum if atropos and advantage < 0 else torch.minimum
        terms = bound(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
        sums.append(-(terms * mask).sum())
        counts.append(mask.sum())
    if over == "rows":
        return torch.stack([total / count for total, count in zip(sums, counts, strict=True)]).mean()
    return sum(sums) / sum(counts)


def assert_same_step(model, loss, expected):
    """Loss and gradients are equal, and a step of an optimiser by them moves the model, which is put back."""
    torch = importlib.import_module("torch")
    parameters = list(model.parameters())
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4, abs=1e-6)
    wanted = torch.autograd.grad(expected, parameters)
    before = [parameter.detach().clone() for parameter in parameters]
    model.zero_grad()
    loss.backward()
    for parameter, gradient in zip(parameters, wanted, strict=True):
        assert torch.allclose(parameter.grad.float(), gradient.float(), atol=2e-6, rtol=1e-3)
    torch.optim.SGD(parameters, lr=0.1).step()
    assert any(not torch.equal(old, new) for old, new in zip(before, parameters, strict=True))
    with torch.no_grad():
        for parameter, old in zip(parameters, before, strict=True):
            parameter.copy_(old)
    model.zero_grad()
