"""Hostile files end in an error or a fault: nothing in them runs, and nothing they promise is believed."""

from __future__ import annotations

import json
import pickle
import random
import struct
import sys
import zipfile

import pytest

import rollouts
import tokentape as tt
from tokentape.cli import main
from tokentape.readers import detect, msgpack


class Runs:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def archive(path, data, storages=()):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
        file.writestr("archive/data.pkl", data)
        for key, content in enumerate(storages):
            file.writestr(f"archive/data/{key}", content)


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize("name", ["a.pkl", "a.pt", "a.json", "a.jsonl", "a.bin", "a.arrow"])
def test_a_pickle_is_refused_and_does_not_run(tmp_path, name, protocol):
    mark = tmp_path / "ran"
    path = tmp_path / name
    path.write_bytes(pickle.dumps({"samples": Runs(mark)}, protocol))
    with pytest.raises(tt.SchemaError):
        detect(path)
    assert main(["lint", str(path)]) in {1, 2}
    assert not mark.exists()


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_code_inside_a_file_of_torch_save_does_not_run(tmp_path, protocol, capsys):
    mark = tmp_path / "ran"
    path = tmp_path / "a.pt"
    archive(path, pickle.dumps({"samples": Runs(mark)}, protocol))
    assert main(["lint", str(path)]) == 2
    assert "which is no plain data" in capsys.readouterr().err
    assert not mark.exists()


TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n"
STORAGE = b"(X\x07\x00\x00\x00storagectorch\nLongStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x02",
        b"\x80\x02}q\x00.",
        b"\x80\x02X\xff\xff\xff\x7fabc.",
        b"\x80\x02r\xff\xff\xff\x7f.",
        b"\x80\x02]q\x00h\x00a.",
        b"\x80\x02" + b"]" * 200_000 + b"a" * 199_999 + b".",
        b"\x80\x02cbuiltins\neval\nX\x01\x00\x00\x001\x85R.",
        b"\x80\x02cos\nsystem\n.",
        b"\x80\x02" + TENSOR + b"(" + STORAGE + b"K\x00K\x09\x85K\x01\x85\x89Ntq\x01R.",
        b"\x80\x02" + TENSOR + b"(" + STORAGE + b"K\x00J\xff\xff\xff\x7f\x85K\x00\x85\x89Ntq\x01R.",
        b"\x80\x02" + TENSOR + b"(" + STORAGE + b"J\xff\xff\xff\xffK\x01\x85K\x01\x85\x89Ntq\x01R.",
        b"\x80\x02ttttt.",
        b"\x80\x02}(]K\x01u.",
    ],
    ids=range(13),
)
def test_a_damaged_tensor_file_is_an_error(tmp_path, data):
    path = tmp_path / "a.pt"
    archive(path, data, [struct.pack("<4q", 1, 2, 3, 4)])
    assert main(["lint", str(path)]) in {1, 2}


def test_a_compressed_member_is_not_unpacked(tmp_path):
    path = tmp_path / "a.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("archive/data.pkl", b"\0" * 50_000_000)
    assert main(["lint", str(path)]) == 2


HUGE = [
    ("a.msgpack", b"\xdd\xff\xff\xff\xff\xdd\xff\xff\xff\xff"),
    ("a.msgpack", b"\x91\xdb\xff\xff\xff\xffabc"),
    ("a.msgpack", b"\x91\xdf\xff\xff\xff\xff"),
    ("a.msgpack", b"\x91" * 100_000),
    ("a.msgpack", b"\xc1"),
    ("a.msgpack", b""),
    ("a.jsonl", b"[" * 100_000 + b"\n"),
    ("a.json", b"[" * 100_000),
    ("a.json", b'{"batch": [{"tokens": [[1' + b"0" * 10_000 + b']], "masks": [[1]], "scores": [1]}]}'),
    ("a.json", b'{"completion_ids": 5, "prompt_ids": {}}'),
    ("a.json", b'{"samples": [5, {"tokens": "abc"}, {"tokens": [[1]]}, {"tokens": [1], "response_length": -5}]}'),
    ("a.jsonl", b'{"tokens": [[1e400]], "masks": [[null]], "scores": []}\n'),
    ("a.jsonl", b'{"tokens": 7, "masks": [[1]]}\n'),
    ("a.jsonl", b'{"nodes": [{"parent": 3}, {"parent": 0}]}\n{"traces": 5}\n'),
    ("a.jsonl", b'{"observation_tokens": [1, 2], "action_ranges": [[-5, 99999999999999]]}\n'),
    ("a.jsonl", b'{"model_input": {"chunks": [{}]}, "loss_fn_inputs": {"target_tokens": []}}\n'),
    ("a.jsonl", b'{"token_ids": [1], "assistant_mask": ["x"], "logprobs": [{}]}\n'),
    ("a.jsonl", b"\xff\xfe\x00\n{}\n"),
    ("a.jsonl", b""),
    ("a.json", b"null"),
    ("a.arrow", b"ARROW1\0\0" + b"\xff" * 64 + b"ARROW1"),
    ("a.parquet", b"PAR1" + b"\xff" * 64 + b"PAR1"),
    ("a.pt", b"PK\x03\x04" + b"\xff" * 64),
]


@pytest.mark.parametrize(("name", "data"), HUGE, ids=range(len(HUGE)))
def test_huge_deep_and_wrong_files_are_errors(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    assert main(["lint", str(tmp_path / name)]) in {1, 2}
    if name != "a.arrow":
        assert main(["convert", str(tmp_path / name), str(tmp_path / "out.arrow")]) in {1, 2}


@pytest.mark.parametrize("name", ["cycle", "self"])
def test_a_graph_that_is_none_is_a_fault(tmp_path, name):
    node = {"token_ids": [1, 2], "mask": [False, True], "logprobs": [-0.5], "sampled": True}
    parents = {"cycle": [1, 0], "self": [0]}[name]
    trace = {"id": "t", "nodes": [{**node, "parent": parent} for parent in parents]}
    (tmp_path / "a.jsonl").write_text(json.dumps(trace) + "\n")
    assert {fault.kind for fault in tt.lint(tmp_path / "a.jsonl").faults} == {"broken-parent"}


def test_a_file_cut_anywhere_or_with_a_byte_changed_is_read_to_an_end(tmp_path):
    files = [rollouts.folder() / entry["file"] for entry in rollouts.entries() if entry["kind"] == "good"]
    files = [file for file in files if file.is_file() and file.suffix != ".pkl"]
    if not files:
        pytest.skip("no rollouts")
    rng = random.Random(7)
    for file in files:
        data = bytearray(file.read_bytes())
        path = tmp_path / file.name
        for _ in range(6):
            changed = data[: rng.randrange(len(data))] if rng.random() < 0.5 else data[:]
            for _ in range(3):
                if changed:
                    changed[rng.randrange(len(changed))] = rng.randrange(256)
            path.write_bytes(changed)
            assert main(["lint", str(path)]) in {0, 1, 2}


def test_msgpack_there_and_back():
    value = [{"a": [1, -1, 2**40, -(2**40), 1.5, None, True, "text", b"bytes", [[]]]}, "é" * 300, list(range(70_000))]
    assert list(msgpack.items(msgpack.dumps(value))) == value


def test_a_deep_pickle_is_no_recursion(tmp_path):
    value: list = []
    for _ in range(sys.getrecursionlimit() * 3):
        value = [value]
    data = b"\x80\x02X\x07\x00\x00\x00samples" + b"]" * 5000 + b"a" * 4999 + b"."
    archive(tmp_path / "a.pt", data)
    assert main(["lint", str(tmp_path / "a.pt")]) in {1, 2}
