"""Compiled tokenizers on disk: where they are kept, and that whatever is found there changes no id."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest

import small
import tokentape as tt
from tokentape import caching

TEXT = "Hi<end>\n\n<assistant>there, it's 日本\n\n\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache that takes small tokenizers too."""
    small.chat()  # it is shared by all tests, and kept nowhere
    folder = tmp_path / "cache"
    monkeypatch.setenv(caching.SETTING, str(folder))
    monkeypatch.setattr(caching, "LEAST", 0)
    return folder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    small.save_model(tmp_path / "model")
    return tmp_path / "model"


def check(chat: tt.Chat) -> None:
    """The chat does what one does that was never kept."""
    expected = small.chat()
    ids = expected.encode(TEXT)
    assert np.array_equal(chat.encode(TEXT), ids)
    assert chat.decode(ids) == TEXT
    assert (chat.engine, chat.vocab_size) == (expected.engine, expected.vocab_size)
    assert [chat.token_bytes(id_) for id_ in ids] == [expected.token_bytes(id_) for id_ in ids]
    for token in ("a", "Ċ", "ĊĊ", "<end>", "no token"):
        assert chat.token_id(token) == expected.token_id(token)
    messages = [{"role": "user", "content": "Hi"}]
    assert chat.render(messages).token_ids.tolist() == expected.render(messages).token_ids.tolist()


def test_a_second_chat_reads_what_the_first_has_kept(cache: Path, model: Path):
    check(tt.Chat.from_pretrained(model))
    (kept,) = cache.iterdir()
    written = kept.stat().st_mtime_ns
    check(tt.Chat.from_pretrained(model))
    check(pickle.loads(pickle.dumps(tt.Chat.from_pretrained(model))))
    assert [kept] == list(cache.iterdir())
    assert kept.stat().st_mtime_ns == written


def test_a_broken_file_is_replaced_without_a_word(cache: Path, model: Path):
    tt.Chat.from_pretrained(model)
    (kept,) = cache.iterdir()
    whole = kept.read_bytes()
    changed = bytearray(whole)
    changed[len(whole) // 2] ^= 0x40
    for content in (b"", b"nonsense", whole[:60], whole[:-1], whole + b"x", bytes(changed)):
        kept.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check(tt.Chat.from_pretrained(model))
        assert kept.read_bytes() == whole


def test_another_build_reads_nothing_of_it(cache: Path, model: Path, monkeypatch: pytest.MonkeyPatch):
    tt.Chat.from_pretrained(model)
    monkeypatch.setattr(caching, "_build", lambda: "another")
    check(tt.Chat.from_pretrained(model))
    assert len(list(cache.iterdir())) == 2


def test_a_tokenizer_that_changes_is_another(cache: Path, model: Path):
    tt.Chat.from_pretrained(model)
    path = model / "tokenizer.json"
    path.write_text(path.read_text(encoding="utf-8").replace("<end>", "<END>"), encoding="utf-8")
    chat = tt.Chat.from_pretrained(model)
    assert len(chat.encode("<END>")) == 1
    assert len(chat.encode("<end>")) == 5
    assert len(list(cache.iterdir())) == 2


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root and Windows write to any folder")
def test_a_folder_that_cannot_be_written_to_is_no_error(cache: Path, model: Path):
    cache.mkdir(mode=0o500)
    check(tt.Chat.from_pretrained(model))
    assert not list(cache.iterdir())


def test_a_file_in_place_of_the_folder_is_no_error(cache: Path, model: Path):
    cache.write_text("a file")
    check(tt.Chat.from_pretrained(model))
    assert cache.read_text() == "a file"


def load(model: Path) -> None:
    for _ in range(5):
        check(tt.Chat.from_pretrained(model))


def test_processes_may_load_at_the_same_time(cache: Path, model: Path):
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=load, args=(model,)) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * len(workers)
    assert len(list(cache.iterdir())) == 1


def test_the_setting_moves_it_or_switches_it_off(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(caching, "LEAST", 0)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    for off in ("off", "OFF", "0", "", "false", "none"):
        monkeypatch.setenv(caching.SETTING, off)
        assert caching.folder() is None
        tt.Chat.from_pretrained(model)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]
    monkeypatch.delenv(caching.SETTING)
    monkeypatch.setattr("sys.platform", "linux")
    assert caching.folder() == tmp_path / "xdg" / "tokentape"
    monkeypatch.setenv("XDG_CACHE_HOME", "no/absolute/path")
    assert caching.folder() == tmp_path / ".cache" / "tokentape"
    monkeypatch.setattr("sys.platform", "darwin")
    assert caching.folder() == tmp_path / "Library" / "Caches" / "tokentape"


def test_a_small_tokenizer_is_compiled_each_time(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(caching.SETTING, str(tmp_path / "cache"))
    tt.Chat.from_pretrained(model)
    assert not (tmp_path / "cache").exists()
