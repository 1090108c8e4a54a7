"""category"""
