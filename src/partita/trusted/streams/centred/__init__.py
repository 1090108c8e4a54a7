"""centred"""
