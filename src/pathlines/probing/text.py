"""What a model is given to read: token ids, and which of them are marks of the tokeniser."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from pathlines.foundation.errors import ArgumentError, PathlinesError
from pathlines.probing.libraries import torch_and_transformers

SAMPLES: dict[str, tuple[str, ...]] = {
    "English sentences": (
        "A pathline is the path that one particle takes through a flow, and depth is the time in which it moves.",
        "The old bridge was closed in spring because the river had carried away one of its stone piers.",
        "She wrote three letters before breakfast, posted two of them, and burned the last one in the stove.",
        "Most bread needs only flour, water, salt and yeast; what differs is how long one is prepared to wait.",
    ),
    "chemical reactions": (
        "CC(=O)O.OCCc1ccccc1>>CC(=O)OCCc1ccccc1",
        "Brc1ccc2ncccc2c1.OB(O)c1ccccc1>>c1ccc(-c2ccc3ncccc3c2)cc1",
        "CC(C)(C)OC(=O)Cl.NCC1CCNCC1>>CC(C)(C)OC(=O)NCC1CCNCC1",
    ),
}
"""Inputs for a probe without --text: the first sample that the vocabulary can write."""

UNKNOWN_ALLOWED = 0.1


class Tokens(msgspec.Struct, frozen=True):
    """Ids of one input; ``special`` are [CLS], [SEP] and the like; ``unknown`` is the share not in the vocabulary."""

    ids: np.ndarray
    special: np.ndarray
    unknown: float


class Tokeniser:
    """The tokeniser of a folder, or the longest matches of its vocabulary where there is only a list of symbols."""

    def __init__(self, folder: Path) -> None:
        self._symbols = _symbols(folder)
        if self._symbols is None:
            _, transformers = torch_and_transformers()
            try:
                self._own = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
            except Exception as error:  # no error type of its own; without a tokeniser ids can still be given
                raise PathlinesError(
                    f"The tokeniser in {folder} cannot be loaded ({str(error).splitlines()[0]}); give --ids instead."
                ) from error

    def __call__(self, text: str, most: int) -> Tokens:
        """Ids of a text, at most ``most``."""
        if self._symbols is not None:
            return _longest_matches(text.strip(), self._symbols, most)
        own = self._own
        ids = np.asarray(own(text, truncation=True, max_length=most)["input_ids"], dtype=np.int64)
        unknown = np.mean(ids == own.unk_token_id) if own.unk_token_id is not None and ids.size else 0.0
        return Tokens(ids, np.isin(ids, own.all_special_ids), float(unknown))


def given_ids(text: str, special: Sequence[int] = ()) -> Tokens:
    """Ids written out as whole numbers, separated by blanks or commas."""
    try:
        ids = np.asarray([int(word) for word in text.replace(",", " ").split()], dtype=np.int64)
    except ValueError as error:
        raise ArgumentError(f"Token ids must be whole numbers ({error}).") from None
    return Tokens(ids, np.isin(ids, list(special)), 0.0)


def read_texts(tokeniser: Tokeniser, lines: Sequence[str] | None, most: int) -> tuple[str, list[Tokens]]:
    """What was read, and its tokens: the given lines, or the first sample with few unknown symbols."""
    if lines is not None:
        kept = [line for line in lines if line.strip()]
        encoded = [tokeniser(line, most) for line in kept]
        if not encoded or min(len(tokens.ids) for tokens in encoded) < 3:
            raise ArgumentError("Every line of the text must have at least three tokens; empty lines are skipped.")
        missed = max(tokens.unknown for tokens in encoded)
        if missed > UNKNOWN_ALLOWED:
            warnings.warn(f"{missed:.0%} of the tokens of a line are unknown to the model's vocabulary.", stacklevel=3)
            return f"{len(kept)} lines, up to {missed:.0%} of whose tokens are unknown to the vocabulary", encoded
        return f"{len(kept)} lines", encoded
    for name, sample in SAMPLES.items():
        encoded = [tokeniser(line, most) for line in sample]
        if max(tokens.unknown for tokens in encoded) <= UNKNOWN_ALLOWED:
            return f"{len(sample)} {name}", encoded
    raise ArgumentError("The vocabulary of this model cannot write any of our sample texts; give --text FILE.")


def _symbols(folder: Path) -> dict[str, int] | None:
    """A bare list of symbols: vocab.txt without pieces of words, and no tokeniser of the library beside it."""
    file = folder / "vocab.txt"
    if not file.is_file() or any((folder / name).is_file() for name in ("tokenizer.json", "spiece.model")):
        return None
    words = file.read_text(encoding="utf-8").splitlines()
    return None if any(word.startswith("##") for word in words) else {word: i for i, word in enumerate(words)}


def _longest_matches(text: str, symbols: dict[str, int], most: int) -> Tokens:
    """[CLS], the longest known symbol again and again, [SEP]."""
    longest, position, missed = max(map(len, symbols)), 0, 0
    ids: list[int] = []
    while position < len(text) and len(ids) < most - 2:
        sizes = range(min(longest, len(text) - position), 0, -1)
        size = next((s for s in sizes if text[position : position + s] in symbols), 0)
        missed += size == 0
        ids.append(symbols.get(text[position : position + size], symbols.get("[UNK]", 0)))
        position += max(size, 1)
    marks = [symbols[mark] for mark in ("[CLS]", "[SEP]") if mark in symbols]
    whole = [*marks[:1], *ids, *marks[1:]]
    return Tokens(np.asarray(whole, dtype=np.int64), np.isin(whole, marks), missed / max(len(ids), 1))
