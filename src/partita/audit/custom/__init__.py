"""custom"""
