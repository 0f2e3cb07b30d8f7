"""Extractive question answering on texts of any length."""
