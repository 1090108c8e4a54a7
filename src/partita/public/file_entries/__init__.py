"""file_entries"""
