"""The public process: release files and published outputs of one folder, for people and for programs.

    app            everything together
    catalogue      the releases of the folder, by name; loaded when asked for, noticed when replaced
    replies        answers as bytes with a tag, kept as long as there is room
    asked          what can be asked, as models; `cells` are conditions in JSON
    answered       what is answered, as models
    ...            one file for each group of routes

It spends nothing, and can open neither data, nor ledgers, nor the secret side of a stream.
"""
