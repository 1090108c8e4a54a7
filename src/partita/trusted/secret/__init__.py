"""secret"""
