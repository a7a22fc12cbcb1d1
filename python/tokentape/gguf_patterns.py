"""How the pre-tokenizers that GGUF files name split text into words, as regular expressions.

*Invariant*: an expression splits any text as llama.cpp splits it under the same name. Expressions of one name work one
after another, each on what the one before has left apart.
"""

from __future__ import annotations

from typing import Final

__all__ = ["IGNORES_MERGES", "PATTERNS"]

CONTRACTION: Final = r"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])"
LINES_AND_SPACES: Final = r"\s*[\r\n]+|\s+(?!\S)|\s+"
SYMBOLS: Final = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
WORD: Final = r"[^\r\n\p{L}\p{N}]?\p{L}+"
GPT2: Final = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
DIGIT: Final = r"\p{N}"
THREE_DIGITS: Final = r"\p{N}{1,3}"


def _words(digits: str, *, word: str = WORD, symbols: str = SYMBOLS, contraction: str = f"{CONTRACTION}|") -> str:
    """Contractions, words with a character before them, digits, symbols with line breaks, white space."""
    return f"{contraction}{word}|{digits}|{symbols}|{LINES_AND_SPACES}"


UPPER: Final = r"[\p{L}&&[^a-z]]"
LOWER: Final = r"[\p{L}&&[^A-Z]]"
SYMBOLS_AND_SLASHES: Final = r" ?[^\s\p{L}\p{N}]+[\r\n/]*"


def _cased(digits: str, ending: str) -> str:
    """Words that break where a capital follows a small letter; letters without case belong to either."""
    start = r"[^\r\n\p{L}\p{N}]?"
    words = f"{start}{UPPER}*{LOWER}+{ending}|{start}{UPPER}+{LOWER}*{ending}"
    return f"{words}|{digits}|{SYMBOLS_AND_SLASHES}|{LINES_AND_SPACES}"


ASIAN: Final = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
MARKED: Final = r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
DEEPSEEK_WORDS: Final = r"[!-/:-@\[-`{-~][A-Za-z]+|" + MARKED + r"| ?[\p{P}\p{S}]+[\r\n]*|" + LINES_AND_SPACES
BLOOM: Final = " ?[^(\\s|.,!?)\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c]+"

_BY_PATTERNS: Final[dict[tuple[str, ...], str]] = {
    (GPT2,): "gpt-2 phi-2 jina-es jina-de jina-v1-en jina-v2-es jina-v2-de jina-v2-code roberta-bpe gigachat a.x-4.0 "
    "mellum modern-bert exaone4 mpt olmo jais trillion granite-docling",
    (DIGIT, GPT2): "smollm starcoder refact command-r codeshell exaone minerva-7b mellum2",
    (_words(THREE_DIGITS),): "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano dbrx "
    "smaug-bpe glm4 chatglm-bpe",
    (_words(DIGIT),): "qwen2 deepseek-r1-qwen kormo f2llmv2 stablelm2 megrez hunyuan solar-open grok-2",
    (
        _words(
            DIGIT,
            word=r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+",
            symbols=r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*",
        ),
    ): "qwen35",
    (_words(DIGIT, contraction=""),): "ufakzeka",
    (_words(DIGIT, symbols=r" ?[^\s\p{L}\p{N}\r\n]+"),): "seed-coder",
    (THREE_DIGITS, ASIAN, DEEPSEEK_WORDS): "deepseek-v3 hunyuan-dense joyai-llm hy_v4",
    (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[[\u0800-\u9fa5\uac00-\ud7ff]&&[^\\s]]+", DIGIT): "deepseek-coder",
    (_cased(DIGIT, ""),): "tekken",
    (_cased(THREE_DIGITS, f"(?:{CONTRACTION})?"),): "gpt-4o llama4 kanana2 talkie minimax-m2",
    (r"[\p{P}$+<=>^~|`]+", GPT2, r"[0-9][0-9][0-9]"): "falcon",
    (r"[\p{P}$+<=>^~|]+", GPT2, r"\p{N}+", r"[0-9][0-9][0-9]"): "default",
    (BLOOM,): "bloom poro-chat gpt3-finnish",
    (BLOOM, DIGIT): "viking",
}
PATTERNS: Final[dict[str, tuple[str, ...]]] = {
    name: patterns for patterns, names in _BY_PATTERNS.items() for name in names.split()
}
"""The expressions of each name that `tokenizer.ggml.pre` may have."""
_IGNORING = "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano tekken"
IGNORES_MERGES: Final = frozenset(_IGNORING.split())
"""Names under which a word that is a token is that token, whatever its merges say."""
