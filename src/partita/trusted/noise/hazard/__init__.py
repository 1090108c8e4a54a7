"""hazard"""
