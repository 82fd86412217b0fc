"""A configuration file while it is read: typed fields, and a list of those that nobody asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from pathlines.foundation.errors import ArgumentError

ACTIVATION_NAMES = {
    "gelu": "gelu",
    "gelu_new": "gelu",  # the tanh formula is within 5e-4 of zΦ(z)
    "gelu_fast": "gelu",
    "gelu_python": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "silu": "silu",
    "swish": "silu",
    "relu": "relu",
    "tanh": "tanh",
    "linear": "linear",
}

_LABELS = """_name_or_path architectures auto_map finetuning_task id2label label2id language model_type prefix
    problem_type task_specific_params tokenizer_class transformers.js_config transformers_version is_llama_config
    bos_token_id eos_token_id pad_token_id sep_token_id mask_token_id cls_token_id unk_token_id decoder_start_token_id
    forced_bos_token_id forced_eos_token_id bos_token_ids eos_token_ids pad_token_ids num_labels classifier_bias
    keys_to_ignore_at_inference unsloth_fixed unsloth_version"""
_RUNNING = """attn_implementation chunk_size_feed_forward dtype torch_dtype torchscript gradient_checkpointing
    output_attentions output_hidden_states output_past output_scores pretraining_tp pruned_heads quantization_config
    return_dict tf_legacy_loss use_bfloat16 use_cache add_cross_attention cross_attention_hidden_size
    is_encoder_decoder tie_encoder_decoder summary_activation summary_first_dropout summary_proj_to_labels
    summary_type summary_use_proj cache_implementation use_flash_attn use_return_dict xla_device
    pad_vocab_size_multiple"""
_GENERATION = """bad_words_ids begin_suppress_tokens diversity_penalty do_sample early_stopping
    encoder_no_repeat_ngram_size exponential_decay_length_penalty length_penalty max_length min_length
    no_repeat_ngram_size num_beam_groups num_beams num_return_sequences remove_invalid_values repetition_penalty
    return_dict_in_generate suppress_tokens temperature top_k top_p typical_p"""
COMMON_IRRELEVANT = frozenset(f"{_LABELS} {_RUNNING} {_GENERATION}".split())
"""Fields of any family that say nothing about tokens at initialisation: labels, generation, storage."""

DROPOUT = ("dropout", "pdrop", "drop_rate")

_EXAMPLES = {"hidden_size": 768, "n_embd": 768, "intermediate_size": 3072}


class Config:
    """The fields of a configuration; every getter notes that its field was used."""

    def __init__(self, fields: Mapping[str, Any], source: str) -> None:
        self.fields, self.source = fields, source
        self._used: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        """The field, or the default where it is absent or null."""
        self._used.add(name)
        value = self.fields.get(name)
        return default if value is None else value

    def integer(self, name: str, meaning: str, default: int | None = None) -> int:
        """A whole number; without default it must be there."""
        value = self.get(name, default)
        if value is None:
            example = _EXAMPLES.get(name, 12)
            raise ArgumentError(f'{self.source} has no `{name}` ({meaning}); write for example "{name}": {example}.')
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ArgumentError(f"{self.source}: `{name}` ({meaning}) must be an integer ≥ 1, but is {value!r}.")
        return value

    def optional(self, name: str, meaning: str) -> int:
        """A whole number, or 0 where it is absent or null."""
        return 0 if self.get(name) is None else self.integer(name, meaning)

    def refuse(self, name: str, allowed: str) -> NoReturn:
        """Raise: the value of this field has no meaning here."""
        raise ArgumentError(f"{self.source}: `{name}` must be {allowed}, but is {self.fields.get(name)!r}.")

    def number(self, name: str, default: float, least: float = 0.0) -> float:
        """A number ≥ ``least``."""
        value = self.get(name, default)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not value >= least:
            raise ArgumentError(f"{self.source}: `{name}` must be a number ≥ {least:g}, but is {value!r}.")
        return float(value)

    def section(self, name: str) -> Config:
        """The fields of an object inside; empty where it is absent or null."""
        value = self.get(name, {})
        if not isinstance(value, Mapping):
            raise ArgumentError(f"{self.source}: `{name}` must be an object with fields, but is {value!r}.")
        return Config(value, f"{self.source}: {name}")

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self.get(name, default)
        if not isinstance(value, bool):
            raise ArgumentError(f"{self.source}: `{name}` must be true or false, but is {value!r}.")
        return value

    def activation(self, name: str, default: str) -> str:
        """An activation by any of its names."""
        value = self.get(name, default)
        if not isinstance(value, str) or value not in ACTIVATION_NAMES:
            known = ", ".join(ACTIVATION_NAMES)
            raise ArgumentError(f"{self.source}: `{name}` must be one of {known}, but is {value!r}.")
        return ACTIVATION_NAMES[value]

    def leftover(self, irrelevant: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(irrelevant, unknown): fields that were not used, by whether they are known to change nothing here."""
        unused = [name for name in self.fields if name not in self._used]
        harmless = COMMON_IRRELEVANT | set(irrelevant)
        known = tuple(n for n in unused if n in harmless or any(d in n for d in DROPOUT) or n.startswith("_"))
        return known, tuple(n for n in unused if n not in known)
