"""pan_private"""
