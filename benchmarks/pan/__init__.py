"""How far pan-private sketches are from the truth, beside the book's, and how fast they are."""
