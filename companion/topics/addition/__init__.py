"""Addition with Fourier features (lesson 04)."""
