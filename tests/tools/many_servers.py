"""A program: one llama.cpp server for each GGUF file named, whose addresses it prints; ends with its standard input."""

from __future__ import annotations

import sys

import xllamacpp

servers = []
for path in sys.argv[1:]:
    settings = xllamacpp.CommonParams()
    settings.model.path = path
    settings.n_ctx, settings.n_parallel, settings.warmup = 64, 1, False
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    servers.append(xllamacpp.Server(settings))
    print(servers[-1].listening_address, flush=True)
sys.stdin.read()
