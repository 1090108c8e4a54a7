"""cases_people"""
