"""Teaches the embedded model to think: makes the examples, trains the adapter, measures it.

problem.py     what a task is, and whether an answer to it is right
numbers.py     families of tasks: arithmetic, comparing, counting, sorting, units
words.py       families of tasks: word problems, logic, tables, texts, formats
talk.py        families of tasks: ordinary openings, and what is out of reach
toolwork.py    families of tasks: a call of a tool, and the answer from its result
families.py    all families, how often each is practised, and conversations made of them
examples.py    writes the training set
render.py      conversations as the tokens the server would see
gguf.py        reads the base weights, writes the adapter
network.py     the model in PyTorch, with the adapter's matrices beside its own
train.py       trains and writes the adapter
quick.py       asks in batches on a GPU, before mull does
evaluate.py    asks through mull, and writes the table of the model card
"""
