"""randomizer"""
