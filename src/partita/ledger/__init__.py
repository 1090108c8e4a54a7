"""What was spent, stored before any noise is drawn."""
