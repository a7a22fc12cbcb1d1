"""Samplings that no encoder gives survive every later operation, id for id, over the tokenizers of the corpus."""

import random

import pytest

import corpus
import tokentape as tt

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ eos_token }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)
WORDS = [
    "hello",
    " wörld",
    "\n\n",
    "  ",
    "12345",
    "don't",
    "日本語",
    "👩‍👩‍👧",
    "e\u0301",
    "</think>",
    '{"a": 1}',
    "\t",
    "ﬁ",
]
USER = [{"role": "user", "content": "Hi"}]
BOUNDED, LONG = 60, 100_000


def chat_of(name):
    return tt.Chat.from_pretrained(corpus.tokenizer_folder(name), template=TEMPLATE)


def split_anywhere(chat, text, chance):
    """Ids of the same text, encoded in pieces: what a policy may sample and an encoder never gives."""
    pieces, ids = [""], []
    for character in text:
        pieces[-1] += character
        if chance.random() < 0.3:
            pieces.append("")
    for piece in pieces:
        ids += chat.encode(piece).tolist()
    return ids


def sampling(chat, chance):
    """One to some ids: not canonical, cut inside a character, with special tokens in odd places."""
    ids = split_anywhere(chat, "".join(chance.choices(WORDS, k=chance.randint(1, 5))), chance)
    if chance.random() < 0.3:
        ids = ids[: chance.randint(1, len(ids))]
    if chance.random() < 0.3:
        ids.insert(chance.randint(0, len(ids)), chance.choice(chat.stop_token_ids))
    if chance.random() < 0.3:
        ids.insert(chance.randint(0, len(ids)), chance.randrange(chat.vocab_size))
    return ids


def survive(chat, chance):
    """Plays some operations, and compares the sampled ids after each."""
    trajectory, sampled = chat.start(USER, history=chance.choice(["keep", "fork"])), []
    for _ in range(chance.randint(1, 5)):
        if trajectory.stage == "prompted":
            ids = sampling(chat, chance)
            trajectory.act(ids, [-0.5] * len(ids))
            sampled += ids
        before = trajectory.token_ids.tolist()
        trajectory = operate(chat, trajectory, chance, sampled)
        assert trajectory.token_ids[: len(before)].tolist() == before
        assert trajectory.token_ids[trajectory.sampled_mask].tolist() == sampled
    row = next(tt.Batch.from_groups([finished(trajectory)]).rows())
    assert [token for token, fact in zip(row.token_ids, row.sampled_mask, strict=True) if fact] == sampled


def operate(chat, trajectory, chance, sampled):
    """One operation; the trajectory that goes on."""
    step = chance.choice(["observe", "fork", "append", "chunk"])
    if step == "observe":
        return trajectory.observe([{"role": "user", "content": chance.choice(WORDS)}])
    if step == "fork":
        return trajectory.fork()
    if step == "append":
        trajectory.append(sampling(chat, chance))
    else:
        ids = sampling(chat, chance)
        trajectory.act(ids, [-0.25] * len(ids), continues=True)
        sampled += ids
    return trajectory


def finished(trajectory):
    trajectory.reward = 1.0
    return tt.Group([trajectory])


def run(name, cases):
    chat, chance = chat_of(name), random.Random(name)
    for case in range(cases):
        try:
            survive(chat, chance)
        except tt.BridgeError as error:
            pytest.fail(f"{name}, case {case}: {error}")
    print(f"{name}: {cases} samplings survived")


@pytest.mark.parametrize("name", corpus.TOKENIZERS)
def test_samplings_that_are_not_canonical_survive(name):
    run(name, BOUNDED)


@pytest.mark.long
@pytest.mark.parametrize("name", corpus.TOKENIZERS)
def test_the_same_at_length(name):
    run(name, LONG // len(corpus.TOKENIZERS))
