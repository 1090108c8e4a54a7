"""lazy"""
