"""mean"""
