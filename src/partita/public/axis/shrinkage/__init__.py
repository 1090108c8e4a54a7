"""shrinkage"""
