"""A page without a server: its scripts, and what writes them into a folder beside the data."""
