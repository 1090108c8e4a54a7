"""The algebra and the language of linear queries."""
