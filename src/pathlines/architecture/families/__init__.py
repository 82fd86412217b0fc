"""Readers of Hugging Face configurations, one file for each family of models."""
