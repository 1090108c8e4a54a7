"""rank_boxes"""
