"""How far continual counters are from the truth, beside published ones and beside what nobody can beat."""
