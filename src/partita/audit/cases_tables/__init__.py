"""cases_tables"""
