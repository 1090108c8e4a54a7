"""registers"""
