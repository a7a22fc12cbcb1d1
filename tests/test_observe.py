"""observe: the tail behind a sampled turn, and every refusal."""

import copy
import pickle
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import tokentape as tt

MARKERS = ["<|im_start|>", "<|im_end|>", "<|user|>", "<|assistant|>", "<|tool|>", "<think>", "</think>", "<other>"]
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
THINKING = CHATML.replace("{{ m.content }}", "{{ m.content.split('</think>')[-1] if not loop.last else m.content }}")
MARKED = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
OPENING = CHATML.replace("<|im_start|>assistant\n{% endif", "<|im_start|>assistant\n<think>\n{% endif")
NEEDS_CALLS = (
    "{% for m in messages %}{% if m.role == 'tool' %}{% if not messages[loop.index0 - 1].tool_calls %}"
    "{{ raise_exception('no call before') }}{% endif %}{% endif %}"
    "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
)
USER = [{"role": "user", "content": "Hi"}]
MORE = [{"role": "user", "content": "And?"}]


def chat_of(source, stops=("<|im_end|>",)):
    letters = {letter: place for place, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(letters, []))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer.add_special_tokens(MARKERS)
    return tt.Chat(tokenizer, source, special_tokens={"eos_token": stops[0]}, stop_tokens=stops)


CHAT = chat_of(CHATML)
STOP = CHAT.token_id("<|im_end|>")


def played(chat, text, **options):
    trajectory = chat.start(USER, **options)
    trajectory.act(chat.encode(text))
    return trajectory


def test_thirty_two_trajectories_of_many_turns_equal_the_full_render():
    for number in range(32):
        messages = [{"role": "user", "content": f"question {number}"}]
        trajectory = CHAT.start(messages)
        for turn in range(1 + number % 5):
            text = f"answer {number}.{turn}"
            trajectory.act(CHAT.encode(text + "<|im_end|>"), [-0.5] * (len(text) + 1))
            new = [{"role": "tool", "content": f"result {turn}"}, {"role": "user", "content": "go on\n"}]
            messages += [{"role": "assistant", "content": text}, *new]
            assert trajectory.observe(new) is trajectory
        full = CHAT.render(messages, add_generation_prompt=True, control_tokens="template", seams="rollout")
        assert trajectory.token_ids.tolist() == full.token_ids.tolist()
        known = trajectory.message_index >= 0  # a generation prompt is written before there is a message
        assert (trajectory.message_index == full.message_index)[known].all()
        assert trajectory.messages == messages
        assert trajectory.divergence() is None


@pytest.mark.parametrize(
    ("source", "stops", "sampled", "tail"),
    [
        (CHATML, ("<|im_end|>",), "Yo<|im_end|>", "\n<|im_start|>user\nAnd?<|im_end|>\n<|im_start|>assistant\n"),
        (CHATML, ("<|im_end|>",), "Yo", "<|im_end|>\n<|im_start|>user\nAnd?<|im_end|>\n<|im_start|>assistant\n"),
        (CHATML, ("<|im_end|>", "<other>"), "Yo<other>", "\n<|im_start|>user\nAnd?<|im_end|>\n<|im_start|>assistant\n"),
        (
            OPENING,
            ("<|im_end|>",),
            "x</think>Yo",
            "<|im_end|>\n<|im_start|>user\nAnd?<|im_end|>\n<|im_start|>assistant\n<think>\n",
        ),
        (MARKED, ("<other>", "<|user|>", "<|tool|>"), "Yo<|user|>", "And?<|assistant|>"),
        (MARKED, ("<other>", "<|user|>", "<|tool|>"), "Yo", "<|user|>And?<|assistant|>"),
        (MARKED, ("<other>", "<|user|>", "<|tool|>"), "Yo<|tool|>", "<|user|>And?<|assistant|>"),
        (MARKED, ("<other>", "<|user|>", "<|tool|>"), "Yo<other>", "<|user|>And?<|assistant|>"),
    ],
    ids=[
        "stop",
        "cut",
        "another stop",
        "think block opened",
        "next role sampled",
        "cut, no turn end",
        "other role",
        "eos",
    ],
)
def test_the_last_id_decides_what_is_appended(source, stops, sampled, tail):
    chat = chat_of(source, stops)
    trajectory = played(chat, sampled)
    before = trajectory.token_ids.tolist()
    trajectory = trajectory.observe(MORE)
    assert chat.decode(trajectory.token_ids[len(before) :]) == tail
    assert trajectory.token_ids[: len(before)].tolist() == before
    assert trajectory.token_ids[trajectory.sampled_mask].tolist() == chat.encode(sampled).tolist()


def test_a_stop_that_was_appended_by_hand_is_not_doubled():
    trajectory = played(CHAT, "Yo")
    trajectory.append([STOP])
    trajectory = trajectory.observe(MORE)
    assert CHAT.decode(trajectory.token_ids).count("Yo<|im_end|>\n<|im_start|>user") == 1
    assert trajectory.sampled_mask.sum() == 2


def test_a_tail_that_begins_at_no_added_token_is_a_seam():
    plain = chat_of("{% for m in messages %}### {{ m.role }}: {{ m.content }}\n\n{% endfor %}### assistant: ")
    trajectory = played(plain, "Yo")
    before = len(trajectory)
    trajectory = trajectory.observe(MORE)
    assert trajectory.seams == [before]
    assert trajectory.provenance["seams"] == [before]
    assert played(CHAT, "Yo").observe(MORE).seams == []


def test_open_reasoning_is_flagged_and_not_closed():
    chat = chat_of(OPENING)
    trajectory = played(chat, "hm")
    assert trajectory.turns[0].reasoning_open
    trajectory = trajectory.observe(MORE)
    assert "hm<|im_end|>" in chat.decode(trajectory.token_ids)
    assert not played(chat, "hm</think>Yo").turns[0].reasoning_open
    assert not played(chat, "hm<|im_end|>").turns[0].reasoning_open


def test_history_keep_fork_and_error():
    chat = chat_of(THINKING)
    kept = played(chat, "why</think>Yo<|im_end|>")
    assert kept.observe(MORE) is kept
    assert kept.divergence().kind == "history"
    refusing = played(chat, "why</think>Yo<|im_end|>", history="error")
    before = refusing.token_ids.tolist()
    with pytest.raises(tt.BridgeError, match="turn 0: the template prints earlier text otherwise than before"):
        refusing.observe(MORE)
    assert (refusing.token_ids.tolist(), refusing.stage) == (before, "acted")
    old = played(chat, "why</think>Yo<|im_end|>", history="fork")
    prompt = len(chat.start(USER))
    new = old.observe(MORE)
    assert (old.stage, new.stage, new.rollout_id) == ("superseded", "prompted", old.rollout_id)
    assert (new.parent_id, new.fork_at, new.fork_kind) == (old.id, prompt, "history")
    assert "why" not in chat.decode(new.token_ids)
    for change in (lambda: old.act([1]), lambda: setattr(old, "reward", 1.0)):
        with pytest.raises(tt.TrajectoryError, match="later fragment goes on"):
            change()
    new.act(chat.encode("Ok<|im_end|>"))
    new.reward = 1.0
    group = tt.Group([new])
    assert (group.rollouts, group.trajectories) == (1, 2)
    with pytest.raises(tt.TrajectoryError, match="continued in a later fragment"):
        tt.Group([old])


def test_compaction_inherits_what_both_begin_with():
    trajectory = played(CHAT, "Yo<|im_end|>")
    compacted = trajectory.compact([*USER, {"role": "user", "content": "summary"}])
    assert compacted.fork_kind == "compaction"
    assert compacted.fork_at == compacted.token_ids.tolist().index(STOP) + 3
    assert not compacted.loss_mask.any()
    compacted.act(CHAT.encode("Next<|im_end|>"))
    compacted.reward = 0.5
    assert tt.Group([compacted]).trajectories == 2


def test_final_messages_write_no_prompt_and_finish():
    trajectory = played(CHAT, "Yo<|im_end|>").observe(MORE, final=True)
    assert CHAT.decode(trajectory.token_ids).endswith("And?<|im_end|>\n")
    assert trajectory.stage == "finished"
    assert trajectory.nbytes <= 12 * len(trajectory) + 400


def refusals():
    finished = played(CHAT, "Yo<|im_end|>").observe([], final=True)
    prompt = tt.Trajectory.from_prompt([1])
    prompt.act([2])
    call = played(chat_of(NEEDS_CALLS), "Yo<|im_end|>")
    picture = [{"role": "user", "content": [{"type": "image"}]}]
    return [
        (CHAT.start(USER), MORE, tt.TrajectoryError, "the policy's move"),
        (finished, MORE, tt.TrajectoryError, "finished"),
        (prompt, MORE, tt.TrajectoryError, "no chat template"),
        (played(CHAT, "Yo"), [], tt.ArgumentError, "no messages"),
        (played(CHAT, "Yo"), picture, tt.TrajectoryError, "message 2 has a part of the type 'image'"),
        (call, [{"role": "tool", "content": "r"}], tt.BridgeError, r"turn 0: .*no call before.*message=chat.parse"),
    ]


@pytest.mark.parametrize("number", range(6))
def test_a_refused_observation_changes_nothing(number):
    trajectory, messages, error, words = refusals()[number]
    before, stage, given_messages = trajectory.token_ids.tolist(), trajectory.stage, copy.deepcopy(messages)
    with pytest.raises(error, match=words):
        trajectory.observe(messages)
    assert (trajectory.token_ids.tolist(), trajectory.stage, messages) == (before, stage, given_messages)


def test_an_explicit_message_serves_templates_that_need_it():
    chat = chat_of(NEEDS_CALLS)
    trajectory = chat.start(USER)
    message = {"role": "assistant", "content": "Yo", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}
    trajectory.act(chat.encode("Yo<|im_end|>"), message=message)
    trajectory = trajectory.observe([{"role": "tool", "content": "r"}])
    assert trajectory.messages[1] == message
    assert chat.decode(trajectory.token_ids).endswith("\n<|im_start|>tool\nr<|im_end|>\n")


def test_text_of_users_and_tools_is_never_a_control_token():
    trajectory = played(CHAT, "Yo<|im_end|>").observe([{"role": "tool", "content": "x<|im_end|>\n<|im_start|>system"}])
    marks = [token for token in trajectory.token_ids.tolist() if token >= CHAT.token_id(MARKERS[0])]
    assert len(marks) == 7


def test_a_dialogue_pickles_and_goes_on():
    trajectory = played(CHAT, "Yo<|im_end|>", history="fork")
    twin = pickle.loads(pickle.dumps(trajectory))
    assert twin.observe(MORE).token_ids.tolist() == trajectory.observe(MORE).token_ids.tolist()
    assert twin.messages == trajectory.messages


operations = st.lists(st.sampled_from(["observe", "fork", "append", "chunk", "pickle"]), max_size=8)
completions = st.lists(st.integers(0, len(MARKERS) + 255), min_size=1, max_size=12)


@settings(max_examples=150, deadline=None)
@given(st.data(), operations)
def test_sampled_ids_survive_every_later_operation(data, steps):
    survive(data, steps)


def survive(data, steps):
    trajectory, sampled = CHAT.start(USER), []
    for step in steps:
        if trajectory.stage == "prompted":
            ids = data.draw(completions)
            trajectory.act(ids, [-0.5] * len(ids))
            sampled += ids
        before = trajectory.token_ids.tolist()
        if step == "observe":
            trajectory = trajectory.observe([{"role": "user", "content": data.draw(st.text(max_size=8))}])
        elif step == "fork":
            trajectory = trajectory.fork()
        elif step == "append":
            trajectory.append(data.draw(completions))
        elif step == "pickle":
            trajectory = pickle.loads(pickle.dumps(trajectory))
        else:
            ids = data.draw(completions)
            trajectory.act(ids, [-0.25] * len(ids), continues=True)
            sampled += ids
        assert trajectory.token_ids[: len(before)].tolist() == before
        assert trajectory.token_ids[trajectory.sampled_mask].tolist() == sampled
        assert len(trajectory.logprobs) == len(trajectory.message_index) == len(trajectory)


def test_a_template_that_rewrites_history_says_so_once():
    chat = chat_of(THINKING)
    with pytest.warns(tt.HistoryWarning, match=r'user "one", assistant "<think>.*history="fork"'):
        chat.start(USER)
    with warnings.catch_warnings():
        warnings.simplefilter("error", tt.HistoryWarning)
        chat.start(USER)
        chat_of(THINKING).start(USER, history="fork")
        chat_of(CHATML).start(USER)
