"""The live pages: the runs of a journal in a browser on this machine, and what a person may do about them.

```text
running.py   a socket on loopback, the server on it, and its end
gate.py      who is let in: the host, the origin, the token; and the headers of every answer
app.py       the addresses: pages, streams of changes, what a person does
boards.py    what a page shows, piece by piece, and when each piece changed
sights.py    the list of runs and one run, read from the journal again and again
tails.py     one reader for each of them, however many watch
desk.py      the part of a run's page where a person decides, speaks and stops
acts.py      what is done then: each is what a command does
pages.py     pieces and pages as HTML
```

And an agent as an endpoint for OpenAI's clients: `openai_api.py` lists the files of that.

Nothing is decided here that the command line does not decide, and nothing of a run is kept here: pages come from the
journal, decisions go into it.
"""

from tenlines.serve.app import Setup, application
from tenlines.serve.running import Address, keep, listen, run

__all__ = ["Address", "Setup", "application", "keep", "listen", "run"]
