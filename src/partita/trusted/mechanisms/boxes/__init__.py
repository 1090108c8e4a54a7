"""boxes"""
