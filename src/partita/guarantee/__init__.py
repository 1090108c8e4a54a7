"""guarantee"""
