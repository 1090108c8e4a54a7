"""Questions to a release as text, and its answers as records: what people type and what programs read.

    tokens        the words, quotes and signs of a text
    questions     what can be asked, as data; `str` writes it as text again
    grammar       text to questions
    conditions    the conditions of a question as a release takes them
    asking        a question to a release, and the record of its answer
    records       what a release is, as records, and records as JSON can say them

`partita query` and the service read the same language and give the same records.
"""
