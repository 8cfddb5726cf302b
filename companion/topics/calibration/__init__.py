"""Calibration and hallucination (lesson 13)."""
