"""Preprocessing as a mrjob job is usually written: a line, a text, a word at a time, on mrjob's local runner.

Three jobs after each other, as the vocabulary has to be known before rows are made: distinct texts, word counts, rows.
mrjob's own advice is followed: fast JSON, protocols of bytes instead of JSON between the steps, words added up in the
mapper, counters once a task. (A combiner for the texts was tried: with a quarter of duplicates its sorting costs more
than it saves.)
"""
