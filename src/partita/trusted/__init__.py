"""Whatever sees rows or draws noise."""
