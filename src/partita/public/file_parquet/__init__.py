"""file_parquet"""
