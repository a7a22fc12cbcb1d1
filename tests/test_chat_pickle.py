"""What a pickled chat carries: the bytes it was made of."""

from __future__ import annotations

import json
import pickle

import small
import tokentape as tt


def test_a_pickle_holds_the_very_file_compressed_once(tmp_path):
    path, chat = tmp_path / "tokenizer.json", small.chat()
    path.write_text(json.dumps(json.loads(chat._tokenizer_json()), indent=4))
    (tmp_path / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
    loaded = tt.Chat.from_pretrained(tmp_path)
    data = pickle.dumps(loaded)
    assert len(data) < len(path.read_bytes()) / 2
    path.unlink()
    assert pickle.dumps(loaded) == data
    again = pickle.loads(data)
    assert pickle.dumps(again) == data
    assert again._tokenizer_sha256() == loaded._tokenizer_sha256()
    assert again.encode("Hi").tolist() == loaded.encode("Hi").tolist()


def test_a_chat_pickles_though_its_file_has_changed(tmp_path):
    path, chat = tmp_path / "tokenizer.json", small.chat()
    path.write_bytes(chat._tokenizer_json())
    loaded = tt.Chat.from_pretrained(tmp_path)
    path.write_text("{}")
    assert pickle.loads(pickle.dumps(loaded)).encode("Hi").tolist() == chat.encode("Hi").tolist()
