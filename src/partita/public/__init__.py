"""What may be copied, stored and queried without limit: no noise, no rows."""
