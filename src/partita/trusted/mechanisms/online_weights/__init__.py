"""online_weights"""
