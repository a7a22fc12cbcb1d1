"""Shared credit: the gradient through the rows of a fork equals the stated rule, numerically."""

from __future__ import annotations

import numpy as np
import pytest

import tokentape as tt

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

PROMPT, SHARED, LEFT, RIGHT = [1, 2, 3], [4, 5, 6], [7, 8], [9, 10, 11]
REWARDS = {"left": 1.0, "right": -0.5, "other": 0.25}


@pytest.fixture(scope="module")
def model():
    """A causal model small enough for float64: logprobs of each token, given those before it."""
    torch.manual_seed(0)
    parts = {
        "embed": torch.nn.Embedding(16, 8),
        "body": torch.nn.GRU(8, 8, batch_first=True),
        "head": torch.nn.Linear(8, 16),
    }
    network = torch.nn.ModuleDict(parts).double()

    def logprobs(token_ids):
        hidden, _ = network["body"](network["embed"](token_ids[None, :-1]))
        scores = network["head"](hidden[0]).log_softmax(-1)
        return scores.gather(-1, token_ids[1:, None])[:, 0]

    return network, logprobs


def forked_group(share_credit):
    """Two rollouts that share a sampled turn, and one of its own."""
    left = tt.Trajectory.from_prompt(PROMPT, vocab_size=16)
    left.act(SHARED)
    right = left.fork()
    left.append([12])
    right.append([13])
    other = tt.Trajectory.from_prompt(PROMPT, vocab_size=16)
    for name, trajectory, token_ids in (("left", left, LEFT), ("right", right, RIGHT), ("other", other, SHARED[:1])):
        trajectory.act(token_ids)
        trajectory.reward = REWARDS[name]
    return tt.Group([left, right, other], id="item").with_advantages("dr_grpo", share_credit=share_credit)


def gradient(network, loss):
    return torch.cat([part.flatten() for part in torch.autograd.grad(loss, network.parameters())])


def by_rows(network, logprobs, group):
    """The policy gradient of what the rows say: loss mask times advantage."""
    loss = torch.zeros((), dtype=torch.float64)
    for row in tt.Batch.from_groups([group]).rows():
        token_ids = torch.tensor(np.asarray(row.token_ids), dtype=torch.long)
        weight = torch.tensor(np.asarray(row.loss_mask) * np.asarray(row.advantages), dtype=torch.float64)
        loss = loss - (weight[1:] * logprobs(token_ids)).sum()
    return gradient(network, loss)


def by_rule(network, logprobs, credit):
    """The rule, written out: each token once, the shared ones with the credit of both rollouts."""
    mean = sum(REWARDS.values()) / 3
    advantage = {name: reward - mean for name, reward in REWARDS.items()}
    parts = [
        (PROMPT, SHARED, credit(advantage["left"], advantage["right"])),
        (PROMPT + SHARED + [12], LEFT, advantage["left"]),
        (PROMPT + SHARED + [13], RIGHT, advantage["right"]),
        (PROMPT, SHARED[:1], advantage["other"]),
    ]
    loss = torch.zeros((), dtype=torch.float64)
    for context, token_ids, weight in parts:
        whole = torch.tensor(context + token_ids)
        loss = loss - weight * logprobs(whole)[len(context) - 1 :].sum()
    return gradient(network, loss)


@pytest.mark.parametrize(
    ("share_credit", "credit"),
    [
        ("mean", lambda left, right: (left + right) / 2),
        ("sum", lambda left, right: left + right),
        ("first", lambda left, _: left),
    ],
)
def test_the_gradient_of_a_fork_is_that_of_the_rule(model, share_credit, credit):
    network, logprobs = model
    measured = by_rows(network, logprobs, forked_group(share_credit))
    expected = by_rule(network, logprobs, credit)
    # Advantages are stored as float32.
    torch.testing.assert_close(measured, expected, rtol=1e-6, atol=1e-7)
    assert expected.abs().max() > 0.01
