"""spending_boxes"""
