"""main"""
