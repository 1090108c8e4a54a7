"""tally"""
