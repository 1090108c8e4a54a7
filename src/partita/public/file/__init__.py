"""file"""
