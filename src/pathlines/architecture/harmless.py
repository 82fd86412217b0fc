"""Fields of configurations that change no token at initialisation, each group with its reason."""

from __future__ import annotations

REASONS = {
    "labels, names and versions": """_name_or_path architectures auto_map finetuning_task id2label label2id language
        model_type prefix problem_type task_specific_params tokenizer_class transformers.js_config transformers_version
        is_llama_config num_labels unsloth_fixed unsloth_version keys_to_ignore_at_inference languages
        default_language vocab_list stage_names""",
    "ids of special tokens: which id a token has changes nothing": """
        bos_token_id eos_token_id pad_token_id sep_token_id
        mask_token_id cls_token_id unk_token_id decoder_start_token_id forced_bos_token_id forced_eos_token_id
        bos_token_ids eos_token_ids pad_token_ids""",
    "how the program runs, not what it computes": """attn_implementation chunk_size_feed_forward dtype torch_dtype
        torchscript gradient_checkpointing output_attentions output_hidden_states output_past output_scores
        pretraining_tp quantization_config return_dict tf_legacy_loss use_bfloat16 use_cache use_flash_attn
        use_return_dict xla_device pad_vocab_size_multiple cache_implementation reorder_and_upcast_attn slow_but_exact
        attention_softmax_in_fp32 scale_attention_softmax_in_fp32 deterministic_flash_attn logits_soft_cap_in_fp32
        output_router_logits experts_implementation""",
    "generation": """bad_words_ids begin_suppress_tokens diversity_penalty do_sample early_stopping
        encoder_no_repeat_ngram_size exponential_decay_length_penalty length_penalty max_length min_length
        no_repeat_ngram_size num_beam_groups num_beams num_return_sequences remove_invalid_values repetition_penalty
        return_dict_in_generate suppress_tokens temperature top_k top_p typical_p num_assistant_tokens""",
    "losses and what is only on in training": """
        router_aux_loss_coef aux_loss_coef router_jitter_noise input_jitter_noise
        auxiliary_loss mask_ratio norm_pix_loss sparse_prediction sparse_pred_ignore_index
        token_dropout semantic_loss_ignore_index""",
    "heads, poolers and decoders behind or beside the stream": """add_cross_attention cross_attention_hidden_size
        is_encoder_decoder tie_encoder_decoder summary_activation summary_first_dropout summary_proj_to_labels
        summary_type summary_use_proj directionality pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers
        pooler_size_per_head pooler_type pooler_act pooler_hidden_act pooler_hidden_size pooler_output_size
        encoder_stride projection_dim projection_size classifier_pooling classifier_activation decoder_bias
        lm_head_bias output_embedding_size num_decoder_layers decoder_layers decoder_ffn_dim decoder_attention_heads
        decoder_vocab_size share_encoder_decoder_embeddings scale_decoder_outputs max_target_positions logit_scale
        logits_scaling final_logit_softcapping num_nextn_predict_layers is_folding_model esmfold_config dim_model_base
        apply_layernorm reshape_hidden_states out_features out_indices use_mask_token _remove_final_layer_norm
        decoder_num_attention_heads decoder_hidden_size decoder_num_hidden_layers decoder_intermediate_size
        nextn_predict_layers""",
    "biases and gains: they start at zero and one": """attention_bias mlp_bias qkv_bias use_bias bias enable_bias
        attention_out_bias norm_bias classifier_bias use_qkv_bias layer_norm_elementwise_affine""",
    "rotations: which pairs of coordinates turn is a matter of names": """rope_interleaved rope_interleave use_mrope
        original_max_position_embeddings""",
    "follow from other fields": """dense_act_fn is_gated_act qk_head_dim n_ctx num_hidden_groups head_dim_derived""",
    "left behind by old versions": """net_structure_type num_memory_blocks gap_size down_scale_factor layers_to_keep
        use_parallel_residual_mlp pruned_heads is_decoder""",
}
DROPOUT = ("dropout", "pdrop", "drop_rate", "drop_path", "layerdrop")
"""Parts of names: nothing is dropped at initialisation."""
_HARMLESS = {name: reason for reason, names in REASONS.items() for name in names.split()}


def harmless(name: str) -> str | None:
    """Why the field changes nothing here, or None."""
    if name.startswith("_") or any(part in name for part in DROPOUT):
        return "private, or only on in training"
    return _HARMLESS.get(name)
