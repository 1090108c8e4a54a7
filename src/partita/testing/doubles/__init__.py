"""doubles"""
