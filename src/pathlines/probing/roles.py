"""Which matrix of the record a parameter of the library's module is, by its name, and where several lie in one."""

from __future__ import annotations

import re
from typing import Any

from pathlines.architecture import Architecture

ROLES = {
    "latent": r"(q_a_proj|q_b_proj|kv_a_proj_with_mqa|kv_b_proj)\.weight",
    "value": r"(query_key_value|qkv_proj|Wqkv|c_attn)\.weight",
    "query": r"(q_proj|query|q_lin|\w*[aA]ttention\.q|attn\.q)\.weight",
    "key": r"(k_proj|key|k_lin|\w*[aA]ttention\.k|attn\.k)\.weight",
    "projected": r"(v_proj|value|v_lin|\w*[aA]ttention\.v|attn\.v)\.weight",
    "router": r"(mlp\.gate|router|router\.layer|gate)\.weight",
    "mlp_gate": r"(gate_proj|wi_0)\.weight",
    "mlp_in": r"(up_proj|fc1|c_fc|fc_in|dense_h_to_4h|intermediate\.dense|lin1|ffn|wi|wi_1|Wi|input_linear|"
    r"gate_up_proj)(\.weight)?",
    "output": r"(o_proj|out_proj|out_lin|attention\.output\.dense|\w*attention\.dense|self_attn\.dense|attn\.Wo|"
    r"attn\.c_proj|\w*[aA]ttention\.o|attn\.o)\.weight",
    "mlp_out": r"(down_proj|fc2|c_proj|fc_out|dense_4h_to_h|output\.dense|lin2|ffn_output|wo|Wo|"
    r"output_linear)(\.weight)?",
    "position": r"(position_embeddings?|embed_positions|wpe|positions_embed)(\.weight)?",
    "type": r"token_type_embeddings\.weight",
    "projection": r"(embeddings_project|embedding_hidden_mapping_in)\.weight",
    "embedding": r"(word_embeddings|embed_tokens|wte|embed_in|tok_embeddings|token_embedding|tokens_embed|shared|"
    r"patch_embedding|patch_embeddings\.projection)\.weight",
}
"""Regular expressions of the last part of a name; the first that fits."""
ELSEWHERE = r"(pooler|head|contact_head)\.|relative_attention_bias|mask_token|_bias$|shared_expert_gate|sinks"
"""Matrices that the stream does not pass, or that the record leaves out."""
ALL_OF_ATTENTION = r"(query_key_value|qkv_proj|Wqkv|c_attn)\.weight$"
GATE_AND_INNER = r"(gate_up_proj|Wi)(\.weight)?$"
_BY_HEAD = ("gpt_neox", "bloom", "persimmon")
"""Families whose joint matrix holds query, key and value of the first head, then of the second …"""
_STACKED = ("gpt2", "gpt_bigcode", "openai-gpt", "imagegpt", "phi3", "modernbert", "modernbert-decoder", "mpt")
"""Families whose joint matrix holds all queries, all keys, all values."""
_CONV = "c_attn"
"""The library's Conv1D keeps its matrix transposed."""


def role_of(name: str) -> str | None:
    """The field of ``Deviations`` that a parameter's name means; ``latent`` has none of its own."""
    for role, pattern in ROLES.items():
        if re.search(rf"(^|\.)({pattern})$", name):
            return {"projected": "value"}.get(role, role)
    return None


def parts_of(family: str, a: Architecture, name: str, gradient: Any) -> dict[str, Any]:
    """The matrices inside a parameter by their names; ``query+key+value`` where their order is the library's secret."""
    if re.search(ALL_OF_ATTENTION, name):
        turned = gradient.T if _CONV in name else gradient
        if family in _BY_HEAD:
            heads = turned.reshape(a.heads, 3, a.head_dim, -1)
            return {"query": heads[:, 0], "key": heads[:, 1], "value": heads[:, 2]}
        sizes = [a.heads * a.head_dim, a.kv_heads * a.head_dim, a.kv_heads * a.value_dim]
        if family in _STACKED and sum(sizes) == len(turned):
            query, key, value = turned.split(sizes)
            return {"query": query, "key": key, "value": value}
        return {"query+key+value": gradient}
    role = role_of(name)
    if role == "mlp_in" and a.gated and re.search(GATE_AND_INNER, name) and gradient.dim() == 2:
        gate, inner = gradient.chunk(2)
        return {"mlp_gate": gate, "mlp_in": inner}
    return {} if role is None else {role: gradient}
