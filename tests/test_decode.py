"""Decoded text of nine real tokenizers equals that of the tokenizers library, for any ids."""

from __future__ import annotations

import random

import pytest

import corpus
import tokentape as tt

SEQUENCES = 400


def ids_of(name: str, library: object, size: int) -> list[list[int]]:
    """Sequences of ids at random; half of them are made of ids whose tokens are no whole characters or are special."""
    generator = random.Random(name)
    odd = [i for i in range(size) if "\ufffd" in library.decode([i], skip_special_tokens=False)]
    odd += list(library.get_added_tokens_decoder())
    known = [i for i in range(size) if library.id_to_token(i) is not None]
    pools = [known, odd]
    return [generator.choices(pools[n % 2], k=generator.randrange(24)) for n in range(SEQUENCES)]


@pytest.mark.parametrize("name", corpus.TOKENIZERS)
def test_any_ids_decode_as_the_library_decodes_them(name: str):
    tokenizers = pytest.importorskip("tokenizers")
    folder = corpus.tokenizer_folder(name)
    chat = tt.Chat.from_pretrained(folder)
    library = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    for token_ids in ids_of(name, library, chat.vocab_size):
        for skip in (False, True):
            expected = library.decode(token_ids, skip_special_tokens=skip)
            assert chat.decode(token_ids, skip_special_tokens=skip) == expected, token_ids
