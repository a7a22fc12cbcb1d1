"""Every template of the corpus plays every scenario: bridged ids equal the full render where prefixes hold."""

import json

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import corpus
import prefix
import tokentape as tt


def byte_tokenizer():
    tokenizer = Tokenizer(
        models.BPE({letter: place for place, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, [])
    )
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    return json.loads(tokenizer.to_str())


def sweep(tokenizer, names):
    tally = prefix.Tally()
    for name in names:
        source = corpus.template(name)
        text = prefix.with_markers(tokenizer, prefix.markers(source))
        chat = tt.Chat(text, source, special_tokens=corpus.SPECIAL_TOKENS)
        for scenario in prefix.scenarios():
            prefix.play(chat, name, scenario, tally)
    print(len(names), "templates:", ", ".join(f"{count} {what}" for what, count in sorted(tally.counts.items())))
    return tally


def test_bridges_equal_the_full_render_where_prefixes_hold():
    corpus.require()
    tally = sweep(byte_tokenizer(), sorted({template for template, _ in prefix.audit()}))
    assert tally.wrong == []
    assert tally.counts["stable, equal"] > 2000


@pytest.mark.long
def test_the_same_over_a_real_vocabulary():
    tokenizer = json.loads((corpus.tokenizer_folder("qwen3") / "tokenizer.json").read_text())
    tally = sweep(tokenizer, sorted({template for template, _ in prefix.audit()}))
    assert tally.wrong == []
