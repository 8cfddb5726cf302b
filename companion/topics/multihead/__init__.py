"""Multi-head attention that can be learned provably (lesson 09)."""
