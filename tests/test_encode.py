"""Text to ids in Python: which path encodes."""

from __future__ import annotations

from tokenizers import Tokenizer, models

import small
import tokentape as tt


def test_the_engine_says_which_path_encodes_and_why():
    assert small.chat().engine.startswith("fast: byte-level BPE")
    words = Tokenizer(models.WordLevel({"a": 0, "[UNK]": 1}, unk_token="[UNK]"))
    assert tt.Chat(words).engine.startswith("reference: ")
