"""bits"""
