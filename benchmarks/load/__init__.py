"""The service under load on this machine: real processes, loopback only, bounded in count and time."""
