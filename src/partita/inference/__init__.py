"""Post-processing of released numbers: free, deterministic, and unable to reach data or noise."""
