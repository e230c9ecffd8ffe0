"""The embedded model: a real llama.cpp server and small real weights, started on first use.

template.py  the chat template that the model was taught (pure)
untaught.py  how it is made to think where its adapter is missing
weights.py   where weights and adapter lie, and what to run if they are missing
install.py   fetches server, weights and adapter
place.py     the files in the data directory: locks, state, log
spawn.py     starts the child and waits for its first word
life.py      the child's life: when it must end
server.py    the child: llama.cpp with its settings
metrics.py   what llama.cpp tells of its work (pure)
manage.py    the user's side: ensure, start, stop, status
"""
