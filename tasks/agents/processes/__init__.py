"""Processes for Python agents: a fork server that has the agent's module loaded, and a process for every trial.

passgate starts the fork server and asks it for processes. Every process, the fork server too, has a keeper: its parent,
which runs none of the agent's code after the fork, ends the whole process tree when passgate closes its control socket
or ends itself, and tells how the process has ended.
"""
