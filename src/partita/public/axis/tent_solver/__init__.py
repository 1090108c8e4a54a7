"""tent_solver"""
