"""product"""
