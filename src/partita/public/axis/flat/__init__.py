"""flat"""
