"""The steward service: publish, feed streams."""
