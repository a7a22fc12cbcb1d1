"""Trajectories over generated templates: an observation renders as a full rendering would, wherever it goes on."""

from __future__ import annotations

import os

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import tokentape as tt
from template_conversations import Conversations
from template_grammar import Grammar

TEMPLATES = 200
LOOP = (
    "{%% set ns = namespace(n=0) %%}%s{%% for message in messages %%}<{{ message.role }}>"
    "{%% if message.role != 'assistant' %%}%s{%% endif %%}{{ message.content }}<end>{%% endfor %%}"
    "{%% if add_generation_prompt %%}<assistant>{%% endif %%}"
)


@pytest.fixture(scope="module")
def tokenizer():
    vocabulary = {character: id for id, character in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(False), decoders.ByteLevel()
    tokenizer.add_special_tokens(["<user>", "<assistant>", "<tool>", "<end>"])
    return tokenizer.to_str()


def outcome(tokenizer: str, source: str, conversations: Conversations) -> str:
    """Plays four turns: `"played"`, or the error. A difference is one, since comparing is switched on."""
    try:
        chat = tt.Chat(tokenizer, source, special_tokens={"eos_token": "<end>"})
        _, arguments = conversations.draw()
        trajectory = chat.start([{"role": "user", "content": "Hi"}], template_kwargs=arguments)
        for turn in range(4):
            sampled = chat.encode(f"A{turn}<end>")
            trajectory.act(sampled, np.full(len(sampled), -0.1, np.float32), finish_reason="stop")
            trajectory.observe([{"role": "user" if turn % 2 else "tool", "content": conversations.word()}])
    except (tt.TemplateError, tt.RenderError, tt.BridgeError) as error:
        return f"{error} in {source!r}"
    return "played"


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("seed", range(2))
def test_observations_go_on_as_full_renderings_would(tokenizer: str, seed: int):
    assert os.environ["TOKENTAPE_CHECK_SHORTCUTS"]
    grammar, conversations = Grammar(seed), Conversations(seed)
    sources = [LOOP % (grammar.template() if number % 2 else "", grammar.template()) for number in range(TEMPLATES)]
    outcomes = [outcome(tokenizer, source, conversations) for source in sources]
    assert not [error for error in outcomes if "took over" in error]
    assert outcomes.count("played") > TEMPLATES // 2


@pytest.mark.parametrize("loops", [1, 2])
def test_a_template_that_prints_messages_ahead_of_their_turns_is_bridged_or_refused(tokenizer: str, loops: int):
    ahead = "{% for message in messages[1:] %}{{ loop.nextitem }}{% endfor %}" * loops
    body = "{% for message in messages %}<{{ message.role }}>{{ message.content }}<end>{% endfor %}"
    chat = tt.Chat(tokenizer, ahead + body + "<assistant>", special_tokens={"eos_token": "<end>"})
    trajectory = chat.start([{"role": "user", "content": "Hi"}])
    sampled = chat.encode("A<end>").tolist()
    trajectory.act(sampled)
    trajectory.observe([{"role": "tool", "content": "3.5"}])
    assert chat.decode(trajectory.token_ids).endswith("<tool>3.5<end><assistant>")
    assert trajectory.token_ids[trajectory.sampled_mask.astype(bool)].tolist() == sampled
