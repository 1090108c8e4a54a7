"""family"""
