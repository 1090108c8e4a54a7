"""arrow"""
