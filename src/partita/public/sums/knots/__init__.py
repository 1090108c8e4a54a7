"""knots"""
