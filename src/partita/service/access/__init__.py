"""Who may do what, and how often.

    tokens      names, scopes and hashed keys: made, rotated, revoked
    token_file  the one file that holds them, changed whole
    scopes      which scope an address needs
    buckets     how often a caller may ask
    guard       the middleware that asks all of them

Routes know nothing of any of it.
"""
