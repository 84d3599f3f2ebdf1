"""``flame doctor``: what works on this machine, and how to mend what does not."""
