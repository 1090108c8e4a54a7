"""Questions to a release as text, and its answers as records: what people type and what programs read.

    questions     the kinds of questions in one table, and questions of these kinds
    grammar       text to questions, by the forms of the table
    records       answers and releases as records, answers as lines of text, records as JSON can say them

`partita query` and the service read the same language and give the same records.
"""
