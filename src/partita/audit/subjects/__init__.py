"""subjects"""
